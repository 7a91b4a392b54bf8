package console

import "regexp"

// joinToken matches a bootstrap token (k8s.io/cluster-bootstrap, BootstrapTokenPattern)
// anywhere in a text.
var joinToken = regexp.MustCompile(`[a-z0-9]{6}\.[a-z0-9]{16}`)

// Redact replaces what looks like a bootstrap token with "[token]". kubeadm
// prints the token in some of its errors.
func Redact(s string) string { return joinToken.ReplaceAllLiteralString(s, "[token]") }
