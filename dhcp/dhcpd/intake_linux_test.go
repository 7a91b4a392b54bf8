package dhcpd_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/e2e/fixture"
	"drover/pools/resolve"
)

func write(t *testing.T, c net.PacketConn, b []byte) {
	t.Helper()
	if _, err := c.WriteTo(b, toServer); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, c net.PacketConn) *dhcpv4.DHCPv4 {
	t.Helper()
	buf := make([]byte, 2000)
	c.SetReadDeadline(time.Now().Add(2 * time.Minute))
	n, from, err := c.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := from.String(), toServer.String(); got != want {
		t.Errorf("answer comes from %s, want %s", got, want)
	}
	p, err := dhcpv4.FromBytes(buf[:n])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRelay(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	r.serve(s)
	relay := r.relay()
	write(t, relay, message(web1, discover, giaddr("10.28.0.254"), option(82, 1, 1, 'x')).ToBytes())
	offer := read(t, relay)
	if got := offer.YourIPAddr.String(); got != "10.28.36.1" || string(offer.Options[82]) != "\x01\x01x" {
		t.Errorf("got %s", offer.Summary())
	}
	x := r.expect(web1, "DISCOVER OFFER")
	if got := x.Giaddr.String(); got != "10.28.0.254" {
		t.Errorf("got relay %s in the exchange", got)
	}
}

func TestNothingEndsTheLoop(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	s.Farm = panicky{}
	r.serve(s)
	relay := r.relay()
	for name, b := range map[string][]byte{
		string(dhcp.Malformed): {},
		"rubbish":              bytes.Repeat([]byte{0xff}, 500),
		"huge":                 make([]byte, 8000),
		"panic":                message(foreign, discover, giaddr("10.28.0.254")).ToBytes(),
	} {
		write(t, relay, b)
		x := r.next()
		want := dhcp.Malformed
		if name == "panic" {
			want = dhcp.Failed
		}
		if x.Decision != want || x.Err == nil {
			t.Errorf("%s: got %q, error %v, want %q", name, x.Decision, x.Err, want)
		}
	}
	write(t, relay, message(web1, discover, giaddr("10.28.0.254")).ToBytes())
	read(t, relay)
}

// panicky is a farm with a bug.
type panicky struct{ farm }

func (panicky) Resolve(q resolve.Query) *resolve.Plan {
	if q.MAC == foreign {
		panic("bug")
	}
	return farm{}.Resolve(q)
}

func TestOverload(t *testing.T) {
	var logged fixture.Log
	r := newRack(t)
	s, _ := newServer()
	stuck := stuckFarm{asked: make(chan struct{}, 100), free: make(chan struct{})}
	s.Farm, s.Workers, s.Queue, s.MaxWait = stuck, 1, 2, time.Hour
	s.Log = slog.New(slog.NewTextHandler(&logged, nil))
	r.serve(s)
	relay := r.relay()
	packet := func(n byte) []byte {
		return message(web1, discover, giaddr("10.28.0.254"), func(d *dhcpv4.DHCPv4) { d.TransactionID[3] = n }).ToBytes()
	}
	write(t, relay, packet(1))
	<-stuck.asked // the only worker is busy
	for n := byte(2); n <= 7; n++ {
		write(t, relay, packet(n)) // 2 to 5 make room for those after them
	}
	var got []dhcp.Decision
	for range 4 { // the server has read them
		got = append(got, r.next().Decision)
	}
	close(stuck.free)
	for _, want := range []byte{1, 6, 7} {
		if got := read(t, relay).TransactionID[3]; got != want {
			t.Errorf("got the answer to request %d, want %d", got, want)
		}
	}
	for range 3 {
		got = append(got, r.next().Decision)
	}
	slices.Sort(got)
	if want := slices.Concat(slices.Repeat([]dhcp.Decision{dhcp.QueueFull}, 4), slices.Repeat([]dhcp.Decision{dhcp.Offered}, 3)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := strings.Count(logged.String(), "dropping the oldest"); got != 1 {
		t.Errorf("overload was logged %d times, want once:\n%s", got, logged.String())
	}
}

// stuckFarm does not answer until free is closed.
type stuckFarm struct {
	farm
	asked, free chan struct{}
}

func (f stuckFarm) Resolve(q resolve.Query) *resolve.Plan {
	f.asked <- struct{}{}
	<-f.free
	return farm{}.Resolve(q)
}

func TestStale(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	clock := time.Unix(0, 0)
	// With one packet the clock needs no lock: the worker reads it after the
	// reader.
	s.Now = func() time.Time { clock = clock.Add(3 * time.Second); return clock }
	r.serve(s)
	relay := r.relay()
	write(t, relay, message(web1, discover, giaddr("10.28.0.254")).ToBytes())
	if x := r.next(); x.Decision != dhcp.Stale {
		t.Errorf("got %q, want %q", x.Decision, dhcp.Stale)
	}
}

func TestListen(t *testing.T) {
	r := newRack(t)
	r.ip("-n", r.srv, "link", "add", "bare", "type", "veth", "peer", "name", "bare2")
	r.ip("-n", r.srv, "link", "set", "lo", "up")
	first := &dhcpd.Server{Interface: "srv", Responder: dhcp.Responder{Farm: farm{}}}
	r.in(r.srv, first.Listen)
	defer first.Close()
	if first.Address != serverAddr {
		t.Errorf("got address %s, want the interface's %s", first.Address, serverAddr)
	}
	for _, tt := range []struct{ name, device, want string }{
		{"a second server", "srv", "another DHCP server"},
		{"no such interface", "nope", "no such network interface"},
		{"no address", "bare", "no IPv4 address"},
		{"loopback", "lo", "not an Ethernet interface"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &dhcpd.Server{Interface: tt.device, Responder: dhcp.Responder{Farm: farm{}}}
			var err error
			r.in(r.srv, func() error { err = s.Listen(); return nil })
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.device) {
				t.Errorf("got error %v, want one with %q and %q", err, tt.want, tt.device)
			}
			if tt.name == "a second server" && !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("got error %v, want EADDRINUSE", err)
			}
		})
	}
	t.Run("another interface", func(t *testing.T) {
		s := &dhcpd.Server{Interface: "bare", Responder: dhcp.Responder{Farm: farm{}, Address: serverAddr}}
		r.in(r.srv, s.Listen)
		s.Close()
	})
	t.Run("Serve without Listen", func(t *testing.T) {
		if err := new(dhcpd.Server).Serve(t.Context()); err == nil {
			t.Error("got no error")
		}
	})
}
