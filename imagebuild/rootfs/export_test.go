package rootfs

// Excluded reports whether patterns leave out a file, given that none of its
// parents is left out.
func Excluded(patterns []string, name string, dir bool) (bool, error) {
	x, err := ParseExcludes(patterns)
	return x.match(name, dir), err
}
