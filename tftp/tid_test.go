package tftp_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestErrorThenRequest (W4): clients ask for the size, end that transfer by an ERROR, and ask
// again from the same port at once. The ERROR hits no other transfer: each has a port of its
// own (RFC 1350, section 4).
func TestErrorThenRequest(t *testing.T) {
	s := newSite(t, nil)
	var wg sync.WaitGroup
	for client := range 12 {
		r := newROM(t, client+1)
		wg.Go(func() {
			for try := range 5 {
				r.ask(s.addr, "small", "octet", "tsize", "0", "blksize", "1468")
				if op, options := r.read(); op != 6 || !strings.Contains(options, "tsize\x005\x00") {
					t.Errorf("client %d, try %d: got packet %d %q, want the size", client, try, op, options)
					return
				}
				r.send(5, "\x00\x08User aborted the transfer\x00")
				r.ask(s.addr, "small", "octet", "blksize", "1400")
				got := ""
				for got == "" {
					op, rest := r.read()
					switch {
					case op == 6 && rest == "blksize\x001400\x00":
						r.send(4, "\x00\x00")
					case op == 3:
						r.send(4, rest[:2])
						got = rest[2:]
					default: // also an answer of the transfer before
						got = fmt.Sprintf("packet %d %q", op, rest)
					}
				}
				if got != "small" {
					t.Errorf("client %d, try %d: got %s", client, try, got)
				}
			}
		})
	}
	wg.Wait()
}
