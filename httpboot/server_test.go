package httpboot_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/httpboot"
	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/machines"
	"drover/pools/resolve"
)

// patience bounds how long a test waits for what has to come. Nothing passes
// because time has passed.
const patience = 30 * time.Second

func dial(t testing.TB, base string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func wait[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}

func TestAccessLog(t *testing.T) {
	var got []httpboot.Request
	w := newWorld(t, func(w *world) { w.OnRequest = func(r httpboot.Request) { got = append(got, r) } })
	w.do("127.0.0.1", "GET", imagePath+"kernel", "")
	w.do("127.0.0.9", "GET", "/boot/52-54-00-00-00-01", "")
	w.do("127.0.0.9", "GET", "/a%0Ab/"+strings.Repeat("x", 1000), "")
	w.farm[macBIOS].Image = "none"
	w.do("127.0.0.1", "GET", "/boot/52-54-00-00-00-01", "")
	if len(got) != 4 {
		t.Fatalf("got %d calls of the hook, want 4", len(got))
	}
	got[0].Took = 0
	want := httpboot.Request{
		Method: "GET", Route: "GET /images/{name}/{generation}/{file}", Path: imagePath + "kernel",
		MAC: macBIOS, Pool: "compute", Node: "node-1", Status: 200, Bytes: 7000, Remote: "127.0.0.1",
	}
	if got[0] != want {
		t.Errorf("got %+v\nwant %+v", got[0], want)
	}
	if got[1].Status != 403 || got[1].Err == nil || got[1].MAC != macBIOS || got[1].Remote != "127.0.0.9" {
		t.Errorf("got %+v, want 403 with the reason", got[1])
	}
	if got[2].Status != 404 || got[2].Route != "" {
		t.Errorf("got %+v, want 404 without route", got[2])
	}
	lines := strings.Split(strings.TrimSpace(w.log.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("got log\n%s\nwant four lines", w.log)
	}
	for i, parts := range [][]string{
		{"level=INFO", "path=" + imagePath + "kernel", "status=200", "bytes=7000", "took=", "addr=127.0.0.1", "mac=52:54:00:00:00:01", "pool=compute"},
		{"level=WARN", "status=403", "addr=127.0.0.9", `err="127.0.0.9 is not the address of 52:54:00:00:00:01"`},
		{"level=INFO", "status=404", `path="/a\nb/xxx`},
		{"level=WARN", "status=200", "mac=52:54:00:00:00:01", `err="image \"none\": file does not exist"`}, // iPXE got a script
	} {
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d: got %s\nwant %s in it", i+1, lines[i], part)
			}
		}
	}
	if len(lines[2]) > 500 {
		t.Errorf("a line of %d bytes: the path is not cut", len(lines[2]))
	}
}

func TestListenTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &httpboot.Server{Addr: l.Addr().String()}
	if _, err := s.Listen(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, want EADDRINUSE", err)
	}
}

func TestListenerBreaks(t *testing.T) {
	w := newWorld(t, nil)
	l, err := w.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := w.Serve(context.Background(), l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want net.ErrClosed", err)
	}
}

func TestSlowHeader(t *testing.T) {
	w := newWorld(t, func(w *world) { w.HeaderTimeout = 20 * time.Millisecond })
	c := dial(t, w.serve(t, nil))
	fmt.Fprint(c, "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the connection was not closed: %v", err)
	}
}

func TestLargeHeader(t *testing.T) {
	w := newWorld(t, nil)
	resp, _ := get(t, w.serve(t, nil)+"/boot.ipxe", "X-Large", strings.Repeat("x", 64<<10))
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got status %d, want 431", resp.StatusCode)
	}
}

func TestSlowBody(t *testing.T) {
	for _, path := range []string{"config", "join", "events"} {
		w := newWorld(t, func(w *world) { w.BodyTimeout = 20 * time.Millisecond })
		n := w.boot(t, macBIOS, "127.0.0.1")
		c := dial(t, w.serve(t, nil))
		fmt.Fprintf(c, "POST /node/%s/%s HTTP/1.1\r\nHost: x\r\nDrover-Nonce: %s\r\nContent-Length: 100\r\n\r\n{", macBIOS.Dashed(), path, n.nonce)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusRequestTimeout {
			t.Errorf("%s: got status %d, want 408", path, resp.StatusCode)
		}
		if n.boots.claimedBy(macBIOS) != "" {
			t.Errorf("%s: the boot was claimed", path)
		}
	}
}

// net/http reads the rest of a body before the next request; a GET that never
// sends its body must not hold a connection.
func TestSlowBodyOfGet(t *testing.T) {
	w := newWorld(t, func(w *world) { w.BodyTimeout = 20 * time.Millisecond })
	c := dial(t, w.serve(t, nil))
	fmt.Fprint(c, "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the connection was not closed: %v", err)
	}
}

// The deadline for a body is over once the body is here, or a join that takes
// longer would be canceled. (net/http ensures that, but does not document
// it.)
func TestBodyTimeoutEndsWithBody(t *testing.T) {
	spy := &deadlineListener{}
	var reading []time.Time
	w := newWorld(t, func(w *world) {
		w.Joiner = joinerFunc(func(ctx context.Context, p *resolve.Plan, a netip.Addr, id string) (pools.JoinConfig, error) {
			spy.mu.Lock()
			reading = slices.Clone(spy.reading)
			spy.mu.Unlock()
			return joinWithToken(ctx, p, a, id)
		})
	})
	n := w.boot(t, macBIOS, "127.0.0.1")
	base := w.serve(t, func(l net.Listener) net.Listener { spy.Listener = l; return spy })
	r, err := http.NewRequest("POST", base+"/node/"+macBIOS.Dashed()+"/join", strings.NewReader(keyBody(n.key)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(pools.NonceHeader, n.nonce)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("got status %d, want 200", resp.StatusCode)
	}
	if n := len(reading); n < 2 || reading[n-2].IsZero() || !reading[n-1].IsZero() {
		t.Errorf("got read deadlines %v before the join, want one for the body and then none", reading)
	}
}

// deadlineListener notes the deadlines that connections are given.
type deadlineListener struct {
	net.Listener
	mu      sync.Mutex
	got     []time.Time // for writing
	reading []time.Time
}

func (l *deadlineListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &deadlineConn{c.(*net.TCPConn), l}, nil
}

type deadlineConn struct {
	*net.TCPConn
	l *deadlineListener
}

func (c *deadlineConn) SetWriteDeadline(d time.Time) error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if !d.IsZero() { // net/http lifts the deadline between requests
		c.l.got = append(c.l.got, d)
	}
	return c.TCPConn.SetWriteDeadline(d)
}

func (c *deadlineConn) SetReadDeadline(d time.Time) error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.reading = append(c.l.reading, d)
	return c.TCPConn.SetReadDeadline(d)
}

// A transfer has no time limit while it moves: each chunk of 1 MiB
// has a deadline of its own.
func TestDeadlineMovesWithProgress(t *testing.T) {
	w := newWorld(t, func(w *world) { w.StallTimeout = time.Hour })
	spy := &deadlineListener{}
	base := w.serve(t, func(l net.Listener) net.Listener { spy.Listener = l; return spy })
	get(t, base+imagePath+"root.squashfs")
	spy.mu.Lock()
	defer spy.mu.Unlock()
	if len(spy.got) < 6 { // the header, and five chunks
		t.Errorf("got %d deadlines, want at least 6", len(spy.got))
	}
	for i := 1; i < len(spy.got); i++ {
		if !spy.got[i].After(spy.got[i-1]) {
			t.Errorf("deadline %d is not after the one before", i)
		}
	}
}

func TestStalledDownload(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 64<<20) // more than the sockets' buffers hold
	done := make(chan httpboot.Request, 1)
	w := newWorld(t, func(w *world) {
		w.StallTimeout = 50 * time.Millisecond
		w.OnRequest = func(r httpboot.Request) { done <- r }
		img := w.images["debian-12@sha256:"+generation]
		writeFile(t, img.Dir+"/"+img.Squashfs.Name, big)
		img.Squashfs.Size = int64(len(big))
		w.images["debian-12@sha256:"+generation] = img
	})
	c := dial(t, w.serve(t, nil))
	if err := c.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET %sroot.squashfs HTTP/1.1\r\nHost: x\r\n\r\n", imagePath)
	r := wait(t, done, "the end of the request")
	if r.Err == nil || r.Bytes >= int64(len(big)) {
		t.Errorf("got %d bytes and error %v, want a transfer cut short", r.Bytes, r.Err)
	}
}

func TestMaxConns(t *testing.T) {
	w := newWorld(t, func(w *world) { w.MaxConns = 1 })
	base := w.serve(t, nil)
	first := dial(t, base)
	firstReader := bufio.NewReader(first)
	request := func(c net.Conn, r *bufio.Reader) {
		t.Helper()
		fmt.Fprint(c, "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Fatalf("got status %d, %v", resp.StatusCode, err)
		}
	}
	request(first, firstReader)
	second := dial(t, base) // waits in the kernel's queue
	answered := make(chan bool)
	go func() {
		defer close(answered)
		request(second, bufio.NewReader(second))
	}()
	request(first, firstReader) // still served
	select {
	case <-answered:
		t.Error("the second connection was served beside the first")
	default:
	}
	first.Close()
	wait(t, answered, "the second connection's answer")
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// A server that stops lets running downloads end.
func TestGracefulStop(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	w := newWorld(t, func(w *world) {
		w.Grace = patience
		w.Joiner = joinerFunc(func(ctx context.Context, p *resolve.Plan, a netip.Addr, id string) (pools.JoinConfig, error) {
			entered <- true
			<-release
			if ctx.Err() != nil {
				return pools.JoinConfig{}, ctx.Err()
			}
			return joinWithToken(ctx, p, a, id)
		})
	})
	n := w.boot(t, macBIOS, "127.0.0.1")
	l, err := w.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served, answered := make(chan error, 1), make(chan int, 1)
	go func() { served <- w.Serve(ctx, l) }()
	go func() {
		r, _ := http.NewRequest("POST", "http://"+l.Addr().String()+"/node/"+macBIOS.Dashed()+"/join", strings.NewReader(keyBody(n.key)))
		r.Header.Set(pools.NonceHeader, n.nonce)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	wait(t, entered, "the join")
	stop()
	refusesConnections(t, l.Addr())
	close(release)
	if got := wait(t, answered, "the answer"); got != 200 {
		t.Errorf("got status %d, want 200", got)
	}
	if err := wait(t, served, "the end of Serve"); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// refusesConnections waits until a server that stops has closed its listener,
// which it does first.
func refusesConnections(t *testing.T, addr net.Addr) {
	t.Helper()
	fixture.Eventually(t, "the end of the listener", func() bool {
		c, err := net.Dial("tcp", addr.String())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// A server that stops lets a download end, and sends away the clients that wait for one.
func TestStopLetsDownloadEnd(t *testing.T) {
	const size = 64 << 20 // more than the sockets' buffers hold
	w := newWorld(t, func(w *world) {
		w.Grace, w.MaxImages = patience, 1
		w.bigImage(t, size)
	})
	l, err := w.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, l) }()
	download := func(from string) (net.Conn, *bufio.Reader) {
		t.Helper()
		c := dialFrom(t, "http://"+l.Addr().String(), from)
		fmt.Fprintf(c, "GET %sroot.squashfs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", imagePath)
		return c, bufio.NewReader(c)
	}
	_, running := download("127.0.0.1")
	resp, err := http.ReadResponse(running, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %v, %v; want 200", resp, err)
	}
	_, waiting := download("127.0.0.2")
	stop()
	if resp, err := http.ReadResponse(waiting, nil); err == nil && resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a waiting client gets status %d, want 503", resp.StatusCode) // or no answer, if it was not even read yet
	}
	refusesConnections(t, l.Addr())
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("got %d bytes, %v; want all %d", n, err, size)
	}
	if err := wait(t, served, "the end of Serve"); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// One that hangs does not keep the server from stopping.
func TestStopCutsOff(t *testing.T) {
	entered := make(chan bool)
	w := newWorld(t, func(w *world) {
		w.Grace = 10 * time.Millisecond
		w.Joiner = joinerFunc(func(ctx context.Context, _ *resolve.Plan, _ netip.Addr, _ string) (pools.JoinConfig, error) {
			entered <- true
			<-ctx.Done()
			return pools.JoinConfig{}, ctx.Err()
		})
	})
	stopDuringJoin(t, w, entered)
}

// Nor do connections that fill the server: Accept waits for a slot then.
func TestStopWithAllConnsTaken(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	defer close(release)
	w := newWorld(t, func(w *world) {
		w.MaxConns = 1
		w.Grace = 10 * time.Millisecond
		w.Joiner = joinerFunc(func(context.Context, *resolve.Plan, netip.Addr, string) (pools.JoinConfig, error) {
			entered <- true
			<-release // whatever the context says
			return pools.JoinConfig{}, errors.New("released")
		})
	})
	stopDuringJoin(t, w, entered)
}

// stopDuringJoin stops the server while a join, which says when it is entered,
// is under way. Serve has to end all the same.
func stopDuringJoin(t *testing.T, w *world, entered <-chan bool) {
	t.Helper()
	n := w.boot(t, macBIOS, "127.0.0.1")
	l, err := w.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, l) }()
	c := dial(t, "http://"+l.Addr().String())
	body := keyBody(n.key)
	fmt.Fprintf(c, "POST /node/%s/join HTTP/1.1\r\nHost: x\r\nDrover-Nonce: %s\r\nContent-Length: %d\r\n\r\n%s", macBIOS.Dashed(), n.nonce, len(body), body)
	wait(t, entered, "the join")
	stop()
	if err := wait(t, served, "the end of Serve"); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// counted counts the questions to the directory of machines.
type counted struct {
	script.Machines
	n int
}

func (c *counted) At(addr netip.Addr) (machines.Machine, bool) { c.n++; return c.Machines.At(addr) }
func (c *counted) Of(m pools.MAC) machines.Machine             { c.n++; return c.Machines.Of(m) }

// A request asks the directory of machines once.
func TestOneQuestion(t *testing.T) {
	w := newWorld(t, nil)
	n := w.boot(t, macBIOS, "127.0.0.1")
	asked := &counted{Machines: w.Scripts.Machines}
	w.Scripts.Machines = asked
	for name, request := range map[string]func(){
		"config": func() { n.ask(t, "config", &pools.NodeConfig{}) },
		"join":   func() { n.ask(t, "join", &pools.JoinConfig{}) },
		"events": func() { n.post("events", `{"step":"init","uptime":1}`) },
		"image":  func() { w.do("127.0.0.1", "GET", imagePath+"kernel", "") },
		"GRUB":   func() { w.do("127.0.0.2", "GET", "/grub/node-52:54:00:00:00:03.cfg", "") },
		"script": func() { w.do("127.0.0.2", "GET", "/boot/"+macUEFI.Dashed(), "") },
	} {
		if request(); asked.n != 1 {
			t.Errorf("%s: %d questions, want 1", name, asked.n)
		}
		asked.n = 0
	}
}

// TestEmptyLineBeforeRequest sends empty lines before requests (W15): RFC 9112, section
// 2.2.
func TestEmptyLineBeforeRequest(t *testing.T) {
	w := newWorld(t, nil)
	base := w.serve(t, nil)
	const request = "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, tt := range []struct {
		name   string
		writes []string
		want   int // answers
	}{
		{"at the begin", []string{"\r\n" + request}, 1},
		{"LF alone", []string{"\n" + request}, 1},
		{"two", []string{"\r\n\r\n" + request}, 1},
		{"in a packet of its own", []string{"\r\n", request}, 1},
		{"between pipelined requests", []string{request + "\r\n" + request + "\r\n\r\n" + request}, 3},
		{"after a body", []string{"POST /boot.ipxe HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n\r\n\r\n" + request}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, base)
			for _, b := range tt.writes {
				if _, err := io.WriteString(c, b); err != nil {
					t.Fatal(err)
				}
			}
			in := bufio.NewReader(c)
			for i := range tt.want {
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
				if want := 200; resp.StatusCode != want && (i > 0 || !strings.HasPrefix(tt.writes[0], "POST")) {
					t.Errorf("answer %d: got status %d, want %d", i+1, resp.StatusCode, want)
				}
			}
			// The kept connection answers another one after an empty line.
			if _, err := io.WriteString(c, "\r\n"+request); err != nil {
				t.Fatal(err)
			}
			if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
				t.Errorf("got %v, %v; want one answer more", resp, err)
			}
		})
	}
}
