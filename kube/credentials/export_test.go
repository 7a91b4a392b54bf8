package credentials

// Rewrite replaces a token in a kubeconfig file.
func Rewrite(path, old, token string) error { return rewrite(path, old, token) }

// Parse reads a token.
func Parse(token string) (c claims, ok bool) { return parse(token) }

// ErrForeign means that drover leaves a kubeconfig file to its owner.
var ErrForeign = errForeign
