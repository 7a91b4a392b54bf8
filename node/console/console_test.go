package console

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestConsolePrintf(t *testing.T) {
	var out strings.Builder
	c := New(&out, fixedUptime)
	c.Printf("network", "%s %s", "eth0", "10.77.0.11/24")
	c.Printf("kubeadm", "two\nlines\n")
	c.Printf("kubeadm", "bell \a, escape \x1b[2J, tab\tx, bad \xff, umlaut ü")
	c.Printf("kubeadm", "token abcdef.0123456789abcdef here")
	c.Close()
	want := `drover  3.2s network: eth0 10.77.0.11/24
drover  3.2s kubeadm: two
drover  3.2s kubeadm: lines
drover  3.2s kubeadm: bell ?, escape ?[2J, tab x, bad ?, umlaut ü
drover  3.2s kubeadm: token [token] here
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// stuckWriter is a serial port with flow control and nothing connected.
type stuckWriter struct{ free chan struct{} }

func (w stuckWriter) Write(b []byte) (int, error) {
	<-w.free
	return len(b), nil
}

func TestConsoleNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stuckWriter{make(chan struct{})}
		c := New(w, fixedUptime)
		for range 2000 {
			c.Printf("x", "y")
		}
		if c.lost.Load() < 1000 {
			t.Errorf("got %d lines lost, want most of 2000", c.lost.Load())
		}
		start := time.Now()
		c.Flush(2 * time.Second)
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("flush of a stuck console: took %v, want 2s", got)
		}
		close(w.free)
		start = time.Now()
		c.Flush(2 * time.Second)
		if got := time.Since(start); got != 0 {
			t.Errorf("flush of a free console: took %v, want no time", got)
		}
		c.Close()
	})
}

func TestRedact(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "no token here", "no token here"},
		{"alone", "abcdef.0123456789abcdef", "[token]"},
		{"in quotes", `token "abcdef.0123456789abcdef" expired`, `token "[token]" expired`},
		{"twice", "abcdef.0123456789abcdef,ghijkl.0123456789abcdef", "[token],[token]"},
		{"glued together", "abcdef.0123456789abcdefabcdef.0123456789abcdef", "[token][token]"},
		{"longer on both sides", "xxabcdef.0123456789abcdefyy", "xx[token]yy"},
		{"secret too short", "abcdef.0123456789abcde", "abcdef.0123456789abcde"},
		{"id too short", "abcde.0123456789abcdef", "abcde.0123456789abcdef"},
		{"upper case", "ABCDEF.0123456789abcdef", "ABCDEF.0123456789abcdef"},
		{"empty", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Redact(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func fixedUptime() time.Duration { return 3200 * time.Millisecond }
