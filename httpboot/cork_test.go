package httpboot_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// corkUpTo is how many files at a time are corked.
const corkUpTo = 32

// tcpListener notes the connections that it accepts. They have room for a small
// part of a file, so that a client who does not read holds it up at its begin.
type tcpListener struct {
	net.Listener
	accepted chan *net.TCPConn
}

func (l *tcpListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		tcp := c.(*net.TCPConn)
		_ = tcp.SetWriteBuffer(64 << 10)
		l.accepted <- tcp
	}
	return c, err
}

// A file goes out in full segments, and its end without delay; with many at a
// time none waits for a segment to be full.
func TestCork(t *testing.T) {
	w := newWorld(t, nil)
	l := &tcpListener{accepted: make(chan *net.TCPConn, corkUpTo+1)}
	url := w.serve(t, func(inner net.Listener) net.Listener { l.Listener = inner; return l }) + imagePath + "root.squashfs"
	begin := func(machine int) (io.Reader, syscall.RawConn) {
		t.Helper()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: narrow(machine).DialContext}}
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		raw, err := (<-l.accepted).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		return resp.Body, raw
	}
	first, firstConn := begin(1)
	waitCork(t, firstConn, 1) // it waits for us, who do not read
	for i := range corkUpTo - 1 {
		_, raw := begin(2 + i)
		waitCork(t, raw, 1)
	}
	more, moreConn := begin(corkUpTo + 1)
	if _, err := io.CopyN(io.Discard, more, 100_000); err != nil { // it is in the midst of the file
		t.Fatal(err)
	}
	if got, err := cork(moreConn); got != 0 || err != nil {
		t.Errorf("TCP_CORK of file %d is %d, %v; want 0", corkUpTo+1, got, err)
	}
	if _, err := io.Copy(io.Discard, io.MultiReader(more, first)); err != nil {
		t.Fatal(err)
	}
	waitClosed(t, moreConn)
	waitClosed(t, firstConn)
	_, lastConn := begin(1)
	waitCork(t, lastConn, 1) // there is room again
}

// A connection is uncorked after a file.
func TestUncork(t *testing.T) {
	w := newWorld(t, nil)
	l := &tcpListener{accepted: make(chan *net.TCPConn, 1)}
	url := w.serve(t, func(inner net.Listener) net.Listener { l.Listener = inner; return l }) + imagePath + "root.squashfs"
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := (<-l.accepted).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	waitCork(t, raw, 1)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	waitCork(t, raw, 0) // it is kept for the next request
}

// narrow dials as one of many machines, with a small buffer for what comes.
func narrow(machine int) *net.Dialer {
	return &net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(machine))},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<10) })
		},
	}
}

// waitCork waits until a connection is corked (1), or is not (0).
func waitCork(t *testing.T, conn syscall.RawConn, want int) {
	t.Helper()
	waitFor(t, func() bool {
		got, err := cork(conn)
		if err != nil {
			t.Fatal(err)
		}
		return got == want
	})
}

// waitClosed waits until the server has closed a connection.
func waitClosed(t *testing.T, conn syscall.RawConn) {
	t.Helper()
	waitFor(t, func() bool { _, err := cork(conn); return errors.Is(err, net.ErrClosed) })
}

func cork(conn syscall.RawConn) (on int, err error) {
	if cerr := conn.Control(func(fd uintptr) { on, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK) }); cerr != nil {
		return 0, cerr
	}
	return on, err
}

func waitFor(t *testing.T, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not after 20 s")
		}
	}
}
