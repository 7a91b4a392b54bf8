package pcap

import (
	"bytes"
	"encoding/base64"
)

// Needles is a writer that searches for secrets, also across the boundaries of writes.
// It finds them in clear text and in base64.
type Needles struct {
	forms []form
	keep  int    // bytes of the past that a needle could begin in
	past  []byte // the last of them
	found []string
}

// form is one way in which a secret can be written.
type form struct {
	secret string
	bytes  []byte
}

// NewNeedles looks for secrets, each of which should be long enough not to
// turn up by chance.
func NewNeedles(secrets ...string) *Needles {
	n := &Needles{}
	for _, s := range secrets {
		n.forms = append(n.forms, form{s, []byte(s)})
		// In base64 a text looks different at each of three alignments; its
		// first and last characters depend on the neighbors.
		for pad := range 3 {
			enc := base64.RawStdEncoding.EncodeToString(append(make([]byte, pad), s...))
			first := (pad*8 + 5) / 6
			last := (pad + len(s)) * 8 / 6
			if last-first >= 12 {
				n.forms = append(n.forms, form{s, []byte(enc[first:last])})
			}
		}
	}
	for _, f := range n.forms {
		n.keep = max(n.keep, len(f.bytes)-1)
	}
	return n
}

// Write searches b together with the end of what came before.
func (n *Needles) Write(b []byte) (int, error) {
	head := append(n.past, b[:min(len(b), n.keep)]...)
	for _, f := range n.forms {
		if bytes.Contains(head, f.bytes) || bytes.Contains(b, f.bytes) {
			n.found = append(n.found, f.secret)
		}
	}
	switch {
	case len(b) >= n.keep:
		n.past = append(n.past[:0], b[len(b)-n.keep:]...)
	default:
		n.past = append(n.past[:0:0], head[max(0, len(head)-n.keep):]...)
	}
	return len(b), nil
}

// Found returns the secrets that were found, with repeats.
func (n *Needles) Found() []string { return n.found }
