package rootfs

// Excluded reports whether patterns exclude a file, given that they exclude none of its
// parents.
func Excluded(patterns []string, name string, dir bool) (bool, error) {
	x, err := ParseExcludes(patterns)
	return x.match(name, dir), err
}
