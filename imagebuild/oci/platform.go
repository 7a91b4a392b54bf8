package oci

import (
	"errors"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Platform is an operating system and a processor architecture, written linux/amd64 or
// linux/arm/v7.
type Platform = v1.Platform

// ParsePlatform parses OS/ARCH or OS/ARCH/VARIANT, where OS is linux. The empty string is
// linux/amd64.
func ParsePlatform(s string) (Platform, error) {
	if s == "" {
		return Platform{OS: "linux", Architecture: "amd64"}, nil
	}
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" || parts[len(parts)-1] == "" {
		return Platform{}, fmt.Errorf("platform %q is not of the form linux/ARCH or linux/ARCH/VARIANT", s)
	}
	return Platform{OS: parts[0], Architecture: parts[1], Variant: strings.Join(parts[2:], "")}, nil
}

// matches reports whether an image for q runs on p. Images seldom name a variant, so the
// variants count only when both are known.
func matches(p, q Platform) bool {
	return p.OS == q.OS && p.Architecture == q.Architecture && (p.Variant == "" || q.Variant == "" || p.Variant == q.Variant)
}

// pickPlatform returns the descriptor for p: one that names its variant too, or else the first
// that runs on p. Descriptors without a platform, such as attestations, do not count.
func pickPlatform(list []Descriptor, p Platform) (Descriptor, error) {
	var have []string
	for _, exactly := range []bool{true, false} {
		for _, d := range list {
			if d.Platform == nil {
				continue
			}
			if matches(p, *d.Platform) && (!exactly || d.Platform.Variant == p.Variant) {
				return d, nil
			}
			if exactly {
				have = append(have, d.Platform.String())
			}
		}
	}
	if len(have) == 0 {
		return Descriptor{}, errors.New("the image index names no platforms: choose a manifest by its digest")
	}
	return Descriptor{}, fmt.Errorf("the image has no variant for %s, only for %s", p, strings.Join(have, ", "))
}
