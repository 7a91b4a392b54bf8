package systemd_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"drover/server/systemd"
)

// listen makes a socket as systemd gives one to a service.
func listen(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return conn
}

// next returns the next message; "" if none comes before the deadline of the socket.
func next(conn *net.UnixConn) string {
	b := make([]byte, 100)
	n, _ := conn.Read(b)
	return string(b[:n])
}

func TestReadyAndStopping(t *testing.T) {
	if err := systemd.Ready(); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	conn := listen(t)
	for _, c := range []struct {
		say  func() error
		want string
	}{{systemd.Ready, "READY=1"}, {func() error { return systemd.Stopping(2 * time.Minute) }, "STOPPING=1\nEXTEND_TIMEOUT_USEC=135000000"}} {
		if err := c.say(); err != nil {
			t.Error(err)
		}
		if got := next(conn); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	if err := systemd.Ready(); err == nil {
		t.Error("no error without a listener")
	}
}

// A server that does not answer gives no sign of life.
func TestWatch(t *testing.T) {
	if err := systemd.Watch(t.Context(), func() { t.Error("asked without a watchdog") }); err != nil {
		t.Errorf("without a watchdog: %v", err)
	}
	conn := listen(t)
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("WATCHDOG_USEC", "3000")
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	hangs, hang, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- systemd.Watch(ctx, func() {
			if asked++; asked == 4 {
				close(hangs)
				<-hang
			}
		})
	}()
	for range 3 {
		if got := next(conn); got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	<-hangs // what was sent before is in the socket already
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got := next(conn); got != "" {
		t.Errorf("got %q without an answer", got)
	}
	cancel()
	close(hang)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestStarting: a start that takes long is heard until it ends.
func TestStarting(t *testing.T) {
	systemd.Starting()() // without systemd
	conn := listen(t)
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("WATCHDOG_USEC", "3000")
	end := systemd.Starting()
	for range 3 {
		if got := next(conn); got != "EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	end()
	if err := systemd.Ready(); err != nil {
		t.Fatal(err)
	}
	for got := ""; got != "READY=1"; got = next(conn) { // after what the start has said before
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got := next(conn); got != "" {
		t.Errorf("got %q after the end of the start", got)
	}
}

func TestWatchdogOfNonsense(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "soon")
	if err := systemd.Watch(t.Context(), func() {}); err == nil {
		t.Error("no error")
	}
}
