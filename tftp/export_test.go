package tftp

// Clean is clean.
func Clean(name string) (string, error) { return clean(name) }
