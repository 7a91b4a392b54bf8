package pools

import (
	"regexp"
	"strings"
)

// NextBoot is an instruction for the next boot of a node, in place of its pool's
// image. It applies once. The empty NextBoot is none.
type NextBoot string

// The values of [NextBoot]; the third is image=REF.
const (
	NextLocal  NextBoot = "local"  // boot from the local disk
	NextRescue NextBoot = "rescue" // stop in a shell before the node's config is fetched
)

// nextImage is the prefix of a NextBoot that names an image.
const nextImage = "image="

// ParseNextBoot reads local, rescue or image=REF, where REF is NAME, NAME:CHANNEL or
// NAME@sha256:DIGEST.
func ParseNextBoot(s string) (NextBoot, error) {
	n := NextBoot(s)
	if n == NextLocal || n == NextRescue {
		return n, nil
	}
	if ref, ok := n.Image(); ok {
		if IsImage(ref) {
			return n, nil
		}
		return "", Hint("write image=NAME, image=NAME:CHANNEL or image=NAME@sha256:<12 to 64 hex digits>", "%q is not an image", ref)
	}
	return "", Hint("write local, rescue or image=NAME", "%q is not a next boot", s)
}

// Image returns the image of image=REF.
func (n NextBoot) Image() (ref string, ok bool) { return strings.CutPrefix(string(n), nextImage) }

// ImageName returns the name in a reference to an image: NAME, NAME:CHANNEL or NAME@sha256:DIGEST.
func ImageName(ref string) string {
	name, _, _ := SplitImage(ref)
	return name
}

// ShortID returns the first 12 digits of the digest of a generation, which are enough to name it.
func ShortID(id string) string { return id[:min(12, len(id))] }

// ShortImage returns a reference to an image with a digest of 12 digits: of the generation that
// is known, else as the reference has it.
func ShortImage(ref, generation string) string {
	name, digest, pinned := strings.Cut(ref, "@sha256:")
	if generation == "" && pinned {
		generation = digest
	}
	if generation == "" {
		return name
	}
	return name + "@" + ShortID(generation)
}

// IsImage reports whether ref is NAME, NAME:CHANNEL or NAME@sha256:DIGEST, where the digest has 12
// digits or more.
func IsImage(ref string) bool {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}(:[a-z][a-z0-9._-]{0,31}|@sha256:[0-9a-f]{12,64})?$`).MatchString(ref)
}
