// Package defaults sets what a config leaves out. It does not know the settings.
package defaults

// Set sets a value that is zero. It leaves any other alone, which [cmp.Or] would write: parts of
// a config that is checked with a change are in force, and are read meanwhile.
func Set[T comparable](p *T, v T) {
	var none T
	if *p == none {
		*p = v
	}
}
