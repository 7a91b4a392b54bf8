package httpboot_test

import (
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
)

// tcpListener notes the connections that it accepts. They have room for a small
// part of a file, so that a client that does not read stops it at its begin.
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

// A file that is the only one goes out in full segments, and its end without
// delay; a file beside another one is not corked.
func TestCork(t *testing.T) {
	w := newWorld(t, nil)
	l := &tcpListener{accepted: make(chan *net.TCPConn, 2)}
	url := w.serve(t, func(inner net.Listener) net.Listener { l.Listener = inner; return l }) + imagePath + "root.squashfs"
	begin := func(machine byte) (io.Reader, syscall.RawConn) {
		t.Helper()
		transport := &http.Transport{DialContext: narrow(machine).DialContext}
		t.Cleanup(transport.CloseIdleConnections)
		resp, err := (&http.Client{Transport: transport}).Get(url)
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
	only, onlyConn := begin(1)
	waitCork(t, onlyConn, 1) // the file waits for us to read
	more, moreConn := begin(2)
	if _, err := io.CopyN(io.Discard, more, 100_000); err != nil { // the file is under way
		t.Fatal(err)
	}
	if got := corked(t, moreConn); got != 0 {
		t.Errorf("TCP_CORK of the second file is %d, want 0", got)
	}
	if _, err := io.Copy(io.Discard, io.MultiReader(only, more)); err != nil {
		t.Fatal(err)
	}
	waitCork(t, onlyConn, 0) // the connection is kept for the next request
}

// narrow dials as one of many machines, with a small buffer for receiving.
func narrow(machine byte) *net.Dialer {
	return &net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, machine)},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<10) })
		},
	}
}

// waitCork waits until a connection is corked (1), or is not (0).
func waitCork(t *testing.T, conn syscall.RawConn, want int) {
	t.Helper()
	fixture.Eventually(t, "a change of TCP_CORK", func() bool { return corked(t, conn) == want })
}

func corked(t *testing.T, conn syscall.RawConn) (on int) {
	t.Helper()
	var err error
	if cerr := conn.Control(func(fd uintptr) { on, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK) }); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	return on
}
