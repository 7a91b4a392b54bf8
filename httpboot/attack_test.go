package httpboot_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/httpboot"
	"drover/pools"
)

// clients serves loopback, except for 127.9/16; nobody is booting.
type clients struct{}

func (clients) Serves(a netip.Addr) bool {
	return a.IsLoopback() && !netip.MustParsePrefix("127.9.0.0/16").Contains(a)
}

func (clients) Booting(string) bool { return false }

// A client of a network that is not served gets a short refusal, and costs no question
// (low finding: "HTTP answers all networks").
func TestNetworkThatIsNotServed(t *testing.T) {
	asked := &counted{}
	var refused refusals
	w := newWorld(t, func(w *world) {
		asked.Machines = w.Machines
		w.Machines = asked
		w.Clients, w.OnRefused = clients{}, refused.count
	})
	n := w.boot(t, macBIOS, "127.0.0.1")
	asked.n = 0
	for _, from := range []string{"127.9.0.1", "198.51.100.7", "2001:db8::1"} {
		for path, body := range map[string]string{
			"/boot.ipxe": "", "/boot/" + macBIOS.Dashed(): "", imagePath + "kernel": "", imagePath + "root.squashfs": "",
			"/loaders/x": "", "/grub/grub.cfg": "", "/": "", "/../etc": "",
			"/node/" + macBIOS.Dashed() + "/config": keyBody(n.key),
		} {
			method := http.MethodGet
			if body != "" {
				method = http.MethodPost
			}
			resp := w.do(from, method, path, body, pools.NonceHeader, n.nonce)
			if resp.Code != http.StatusForbidden || resp.Body.Len() > 100 || resp.Header().Get("Connection") != "close" {
				t.Errorf("%s of %s: got status %d, %q; want a short 403", path, from, resp.Code, resp.Body)
			}
			refused.only(t, httpboot.RefusedNetwork)
		}
	}
	if asked.n > 0 {
		t.Errorf("%d questions to the directory of machines", asked.n)
	}
	if resp := w.do("127.0.0.1", "GET", "/boot.ipxe", ""); resp.Code != http.StatusOK {
		t.Errorf("a client that is served: got status %d", resp.Code)
	}
}

const finder = "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\n\r\n"

// Connections of strangers, and of networks that are not served, leave room for machines
// (finding H8, and "connections" of deliverable 3).
func TestConnectionsOfStrangers(t *testing.T) {
	w := newWorld(t, func(w *world) { w.MaxConns, w.Clients = 20, clients{} })
	base := w.serve(t, nil)
	for range 4 {
		dialFrom(t, base, "127.9.0.1")
	}
	closed(t, dialFrom(t, base, "127.9.0.1"))
	for i := range 11 { // half, and a tenth more
		dialFrom(t, base, fmt.Sprintf("127.0.1.%d", i+1))
	}
	closed(t, dialFrom(t, base, "127.0.1.100"))
	for i := range 9 {
		c := dialFrom(t, base, "127.0.0.1")
		fmt.Fprint(c, finder)
		if resp, _ := answer(t, c); resp.StatusCode != 200 {
			t.Errorf("connection %d of a machine: got status %d, want 200", i, resp.StatusCode)
		}
	}
}

// A catch-all machine that is not booting is a stranger; declared machines get their
// slots beside any number of slow strangers (finding H8).
func TestSlowStrangers(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.MaxImages, w.Clients = 4, clients{}
		w.bigImage(t, 64<<20)
	})
	base := w.serve(t, nil)
	root := func(from string) int {
		t.Helper()
		c := dialFrom(t, base, from)
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %sroot.squashfs HTTP/1.1\r\nHost: x\r\nDrover-Wait: 0\r\n\r\n", imagePath)
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 1024), nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	if got := root("127.0.0.3"); got != 200 { // macUnknown
		t.Errorf("the first stranger: got status %d, want 200", got)
	}
	for i := range 10 {
		if got := root(fmt.Sprintf("127.0.1.%d", i+1)); got != 503 {
			t.Errorf("stranger %d: got status %d, want 503", i, got)
		}
	}
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		if got := root(from); got != 200 {
			t.Errorf("a declared machine: got status %d, want 200", got)
		}
	}
}

// periodListener notes how long connections are given to write.
type periodListener struct {
	net.Listener
	mu  sync.Mutex
	got []time.Duration
}

func (l *periodListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &periodConn{c.(*net.TCPConn), l}, nil
}

func (l *periodListener) take() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.got = nil }()
	return l.got
}

type periodConn struct {
	*net.TCPConn
	l *periodListener
}

func (c *periodConn) SetWriteDeadline(d time.Time) error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.got = append(c.l.got, time.Until(d))
	return c.TCPConn.SetWriteDeadline(d)
}

// A stranger that keeps a declared machine waiting has to read fast (finding H8).
func TestStrangerThatKeepsMachineWaiting(t *testing.T) {
	waiting := make(chan int, 1000)
	w := newWorld(t, func(w *world) {
		w.MaxImages, w.Clients = 1, clients{}
		w.OnQueue = func(_, n int) { waiting <- n }
		w.bigImage(t, 64<<20)
	})
	spy := &periodListener{}
	base := w.serve(t, func(l net.Listener) net.Listener { spy.Listener = l; return spy })
	slow := dialFrom(t, base, "127.0.1.1")
	fmt.Fprintf(slow, "GET %sroot.squashfs HTTP/1.1\r\nHost: x\r\n\r\n", imagePath)
	buffer := make([]byte, 1<<20)
	if _, err := slow.Read(buffer); err != nil {
		t.Fatal(err)
	}
	machine := dialFrom(t, base, "127.0.0.1")
	fmt.Fprintf(machine, "GET %sroot.squashfs HTTP/1.1\r\nHost: x\r\n\r\n", imagePath)
	for wait(t, waiting, "the machine in the queue") == 0 {
	}
	spy.take()
	for total := 0; total < 16<<20; {
		n, err := slow.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	got := spy.take()
	if len(got) < 2 {
		t.Fatalf("got %d deadlines, want one for each MiB", len(got))
	}
	for _, d := range got[1:] { // the first may be of the time before
		if d > 3*time.Second {
			t.Errorf("a stranger has %v for a MiB, want 3s", d)
		}
	}
}

// A flood of requests does not fill the disk with lines (finding M2).
func TestLogOfFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the limit is one per second, of whatever processor
		w := newWorld(t, func(w *world) { w.Clients = clients{} })
		for range 2000 {
			w.do("127.9.0.1", "GET", "/boot.ipxe", "")
			w.do("127.0.0.1", "GET", imagePath+"kernel", "")
			w.do("127.0.0.9", "GET", "/boot/"+macBIOS.Dashed(), "")
		}
		if n := strings.Count(w.log.String(), "\n"); n > 1000 {
			t.Errorf("6000 requests made %d lines", n)
		}
	})
}
