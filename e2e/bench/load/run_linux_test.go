package load_test

import (
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/bench/load"
	"drover/e2e/fixture"
)

// inside runs f in a network namespace of its own that has only a loopback interface.
func inside(t *testing.T, f func()) {
	t.Helper()
	fixture.Root(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("unshare: %v", err)
			return
		}
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			t.Errorf("ip: %v: %s", err, out)
			return
		}
		f()
	}()
	<-done
}

// respond answers each message as a server does, except every nth DISCOVER. It returns when
// the connection is closed.
func respond(c *net.UDPConn, nth int) {
	b := make([]byte, 1500)
	for discovers := 0; ; {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		kind := byte(ack)
		if b[242] == 1 { // option 53 comes first
			kind = offer
			if discovers++; discovers%nth == 0 {
				continue
			}
		}
		out := answer(53, 1, kind, 54, 4, 127, 0, 0, 1, 255)
		copy(out[4:8], b[4:n])
		if _, err := c.WriteToUDPAddrPort(out, from); err != nil {
			return
		}
	}
}

func TestRun(t *testing.T) {
	inside(t, func() {
		to := netip.MustParseAddr("127.0.0.1")
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 67)))
		if err != nil {
			t.Error(err)
			return
		}
		go respond(c, 10)
		defer c.Close()
		l := load.Load{Server: to, Relay: netip.MustParseAddr("127.0.0.2"), Rate: 2000, Duration: time.Minute, Machines: 500}
		r, err := load.Run(t.Context(), l)
		if err != nil {
			t.Error(err)
			return
		}
		if r.Discovers != 500 || r.Acks != 450 || r.Useless != 0 {
			t.Errorf("got %+v, want 500 exchanges begun and 450 completed", r.Counts)
		}
		if got := r.Loss(); got < 0.0999 || got > 0.1001 {
			t.Errorf("got a loss of %g, want 0.1", got)
		}
		// 500 at 2000/s take a quarter of a second; a busy host makes it longer.
		if r.Sending < 200*time.Millisecond || r.Begun() > 2500 {
			t.Errorf("sent for %s, %g/s; want 2000/s", r.Sending, r.Begun())
		}
		if r.P50 <= 0 || r.P50 > r.P99 || r.P99 > r.Max {
			t.Errorf("got p50 %s, p99 %s, max %s", r.P50, r.P99, r.Max)
		}
		l.Retry = 50 * time.Millisecond
		if r, err = load.Run(t.Context(), l); err != nil || r.Acks < 250 || r.Acks == 500 {
			t.Errorf("asking until half are served: got %+v, %v; want 250 of 500 machines served, and a few more", r.Counts, err)
		}
	})
}

func TestRunRefuses(t *testing.T) {
	for _, l := range []load.Load{{Rate: 1}, {Rate: 1, Machines: 1<<16 + 1}, {Machines: 1}} {
		if _, err := load.Run(t.Context(), l); err == nil {
			t.Errorf("%d machines at %g/s is no error", l.Machines, l.Rate)
		}
	}
}
