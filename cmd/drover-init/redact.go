package main

// A bootstrap token is six characters, a dot, sixteen characters, all of
// [a-z0-9] (k8s.io/cluster-bootstrap, BootstrapTokenPattern).
const (
	tokenID     = 6
	tokenSecret = 16
	tokenLen    = tokenID + 1 + tokenSecret
)

// redact replaces what looks like a bootstrap token with "[token]". kubeadm
// prints the token in some of its errors.
func redact(s string) string {
	var out []byte
	rest := 0 // start of the text that is not yet copied to out
	for i := 0; i+tokenLen <= len(s); i++ {
		if s[i+tokenID] != '.' || !tokenChars(s[i:i+tokenID]) || !tokenChars(s[i+tokenID+1:i+tokenLen]) {
			continue
		}
		out = append(append(out, s[rest:i]...), "[token]"...)
		rest = i + tokenLen
		i = rest - 1
	}
	if rest == 0 {
		return s
	}
	return string(append(out, s[rest:]...))
}

func tokenChars(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
