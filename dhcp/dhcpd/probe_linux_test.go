package dhcpd_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/resolve"
)

// atOnce is what an answer that was not kept back takes at most, on a busy
// machine; a probe takes 200 ms.
const atOnce = 150 * time.Millisecond

// street is a rack where the client's side has addresses, and answers ARP for
// them with MAC m. send sends a packet in a frame of stray.
func street(t *testing.T, m pools.MAC, addresses ...string) (_ *rack, _ *leases, _ net.PacketConn, send func([]byte)) {
	t.Helper()
	r := newRack(t)
	s, l := newServer()
	s.Probe = true
	r.serve(s)
	r.plug(m)
	r.ip("-n", r.cli, "addr", "add", "10.28.0.200/16", "dev", "cli")
	for _, a := range addresses {
		r.ip("-n", r.cli, "addr", "add", a+"/16", "dev", "cli")
	}
	conn := r.udp("0.0.0.0:68")
	r.reach(conn)
	return r, l, conn, r.card(stray)
}

// here is a packet of a machine on the server's own wire. The answer goes to
// everybody, so that it reaches the test.
func here(m pools.MAC, t dhcpv4.MessageType, mods ...dhcpv4.Modifier) []byte {
	return message(m, t, append(mods, dhcpv4.WithBroadcast(true))...).ToBytes()
}

func TestProbe(t *testing.T) {
	t.Run("nobody has the address", func(t *testing.T) {
		r, _, conn, send := street(t, foreign)
		send(here(stray, discover))
		if got := read(t, conn).YourIPAddr.String(); got != "10.28.72.10" {
			t.Errorf("got %s", got)
		}
		if x := r.next(); x.Decision != dhcp.Offered || x.Took < 200*time.Millisecond {
			t.Errorf("got %q after %s, want an offer after 200 ms", x.Decision, x.Took)
		}
		send(here(stray, discover))
		if x := r.next(); x.Decision != dhcp.Offered || x.Took > atOnce {
			t.Errorf("asking again: got %q after %s, want an offer at once", x.Decision, x.Took)
		}
	})
	t.Run("a stranger has it", func(t *testing.T) {
		r, l, conn, send := street(t, foreign, "10.28.72.10")
		send(here(stray, discover))
		if got := read(t, conn).YourIPAddr.String(); got != "10.28.72.12" {
			t.Errorf("got %s, want the next address", got)
		}
		if x := r.next(); x.Decision != dhcp.Offered || x.Address.String() != "10.28.72.12" {
			t.Errorf("got %q, %s", x.Decision, x.Address)
		}
		if !l.Declined[netip.MustParseAddr("10.28.72.10")] {
			t.Error("the address is not kept from others")
		}
	})
	t.Run("strangers have them all", func(t *testing.T) {
		r, l, _, send := street(t, foreign, "10.28.72.10", "10.28.72.12", "10.28.72.13", "10.28.72.14")
		send(here(stray, discover))
		if x := r.next(); x.Decision != dhcp.NoAddress || x.Err == nil || x.Reply != "" {
			t.Errorf("got %q, reply %q, error %v", x.Decision, x.Reply, x.Err)
		}
		if len(l.Declined) != 3 {
			t.Errorf("declined %v, want three addresses", l.Declined)
		}
	})
	t.Run("the machine itself has it", func(t *testing.T) {
		r, _, _, send := street(t, stray, "10.28.72.10")
		send(here(stray, discover))
		if x := r.next(); x.Decision != dhcp.Offered || x.Address.String() != "10.28.72.10" {
			t.Errorf("got %q, %s", x.Decision, x.Address)
		}
	})
	t.Run("asking again meanwhile", func(t *testing.T) {
		r, _, _, send := street(t, foreign)
		send(here(stray, discover))
		send(here(stray, discover))
		if x := r.next(); x.Decision != dhcp.Waiting || x.MAC != stray {
			t.Errorf("got %q first, want %q", x.Decision, dhcp.Waiting)
		}
		if x := r.next(); x.Decision != dhcp.Offered || x.Took < 200*time.Millisecond {
			t.Errorf("got %q after %s", x.Decision, x.Took)
		}
	})
}

// withdrawn is a store that takes every OFFER back before its probe ends, as when the
// machine got another address meanwhile.
type withdrawn struct{ *leases }

// Decline returns false.
func (withdrawn) Decline(*resolve.Plan, netip.Addr, string, time.Time) bool { return false }

// TestConflictInTheLog: finding "low" of the attacks: the log said that an address is kept
// from all machines although the store had not put it into quarantine.
func TestConflictInTheLog(t *testing.T) {
	const quarantine = "no machine gets it for a while"
	for _, tt := range []struct {
		name  string
		store func(*leases) dhcp.Leases
		want  bool // that line
	}{
		{"the address is in quarantine", func(l *leases) dhcp.Leases { return l }, true},
		{"the OFFER is no longer in force", func(l *leases) dhcp.Leases { return withdrawn{l} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRack(t)
			s, l := newServer()
			var log fixture.Log
			s.Probe, s.Leases, s.Log = true, tt.store(l), slog.New(slog.NewTextHandler(&log, nil))
			r.serve(s)
			r.plug(foreign)
			for _, a := range []string{"10.28.0.200", "10.28.72.10"} {
				r.ip("-n", r.cli, "addr", "add", a+"/16", "dev", "cli")
			}
			r.reach(r.udp("0.0.0.0:68"))
			r.card(stray)(here(stray, discover))
			if x := r.next(); x.MAC != stray {
				t.Fatalf("got %q for %s", x.Decision, x.MAC)
			}
			if got := strings.Contains(log.String(), quarantine); got != tt.want {
				t.Errorf("the log says %q: %t, want %t\n%s", quarantine, got, tt.want, log.String())
			}
		})
	}
}

// TestNoProbe has the requests that do not wait for a probe.
func TestNoProbe(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mac    pools.MAC
		packet []byte
	}{
		{"a node with an address of its own", web1, here(web1, discover)},
		{"a machine behind a relay, where nobody hears ARP", pools.MAC{}, here(stray, discover, giaddr("10.28.0.200"))},
		{"a machine that has a lease", stray, here(stray, request, requested("10.28.72.10"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _, _, _ := street(t, foreign, "10.28.72.10")
			if tt.mac.IsZero() {
				write(t, r.udp("10.28.0.200:67"), tt.packet)
			} else {
				r.card(tt.mac)(tt.packet)
			}
			if x := r.next(); x.Reply == "" || x.Took > atOnce {
				t.Errorf("got %q after %s", x.Decision, x.Took)
			}
		})
	}
}

func TestStopWhileProbing(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	s.Probe, s.Interface = true, "srv"
	s.OnExchange = func(x dhcp.Exchange) { r.exchanges <- x }
	r.in(r.srv, s.Listen)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	r.plug(foreign)
	r.ip("-n", r.cli, "addr", "add", "10.28.0.200/16", "dev", "cli")
	r.reach(r.udp("0.0.0.0:68"))
	r.card(stray)(here(stray, discover))
	r.card(web1)(here(web1, discover))
	r.expect(web1, "DISCOVER OFFER") // so the other was taken up
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if x := r.next(); x.MAC != stray || x.Decision != dhcp.Waiting {
		t.Errorf("got %q for %s, want %q", x.Decision, x.MAC, dhcp.Waiting)
	}
}
