package oci

import (
	"fmt"
	"strings"
)

// Platform is an operating system and a processor, written linux/amd64 or
// linux/arm/v7.
type Platform struct {
	OS, Arch, Variant string
}

// ParsePlatform reads the usual form. The empty string is linux/amd64.
func ParsePlatform(s string) (Platform, error) {
	if s == "" {
		return Platform{OS: "linux", Arch: "amd64"}, nil
	}
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" || parts[len(parts)-1] == "" {
		return Platform{}, fmt.Errorf("platform %q is not of the form linux/ARCH or linux/ARCH/VARIANT", s)
	}
	return Platform{OS: parts[0], Arch: parts[1], Variant: strings.Join(parts[2:], "")}, nil
}

// String returns the form that [ParsePlatform] reads.
func (p Platform) String() string {
	s := p.OS + "/" + p.Arch
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// matches reports whether an image for os/arch/variant runs on p. Images seldom
// name a variant, so it counts only when both do.
func (p Platform) matches(os, arch, variant string) bool {
	return p.OS == os && p.Arch == arch && (p.Variant == "" || variant == "" || p.Variant == variant)
}
