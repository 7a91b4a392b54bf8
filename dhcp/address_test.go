package dhcp_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

func wantHeld(t *testing.T, l *leases, m pools.MAC, want string) {
	t.Helper()
	got, ok := l.Holds(m, noon)
	if want == "" && ok || want != "" && got.String() != want {
		t.Errorf("%s holds %s (%t), want %q", m, got, ok, want)
	}
}

// TestDeclaredWhileItRuns: the config declares a machine of the catch-all pool
// as web1, with an address of its own, while the machine uses its lease.
func TestDeclaredWhileItRuns(t *testing.T) {
	s, l := newServer()
	l.Hold(web1, "10.28.72.10")
	play(t, s, []step{
		{"it renews", message(web1, request, ciaddr("10.28.72.10")), "ACK", "10.28.72.10", dhcp.Acknowledged},
		{"its system looks for an address anew", message(web1, discover, option(55, 1, 3, 6)), "OFFER", "10.28.72.10", dhcp.Offered},
		{"and takes it", message(web1, request, serverID(serverAddr), requested("10.28.72.10")), "ACK", "10.28.72.10", dhcp.Acknowledged},
		{"its system comes back with it", message(web1, request, requested("10.28.72.10")), "ACK", "10.28.72.10", dhcp.Acknowledged},
		{"its system comes back with another", message(web1, request, requested("10.28.72.11")), "NAK", "0.0.0.0", dhcp.Refused},
	})
	wantHeld(t, l, web1, "10.28.72.10")
	play(t, s, []step{
		{"it boots", message(web1, discover, rom), "OFFER", "10.28.36.1", dhcp.Offered},
	})
	wantHeld(t, l, web1, "")
	play(t, s, []step{
		{"the boot program takes it", message(web1, request, rom, serverID(serverAddr), requested("10.28.36.1")), "ACK", "10.28.36.1", dhcp.Acknowledged},
		{"its system gets the same", message(web1, discover), "OFFER", "10.28.36.1", dhcp.Offered},
		{"and may not have the old one", message(web1, request, requested("10.28.72.10")), "NAK", "0.0.0.0", dhcp.Refused},
	})
}

func TestBootingLeavesTheLeasesOfAllCards(t *testing.T) {
	s, l := newServer()
	s.Farm = farmFunc(func(p *resolve.Plan) { p.MACs = []pools.MAC{web1, web1b} })
	l.Hold(web1, "10.28.36.7")
	l.Hold(web1b, "10.28.36.8")
	play(t, s, []step{{"web1 boots", message(web1, discover, rom), "OFFER", "10.28.36.1", dhcp.Offered}})
	if want := []string{"left by " + web1.String(), "left by " + web1b.String()}; !slices.Equal(l.Taken, want) {
		t.Errorf("got %q, want %q", l.Taken, want)
	}
}

// TestNewAddressInTheConfig: web1 was switched on with 10.28.36.7. Meanwhile
// the config gives it 10.28.36.1.
func TestNewAddressInTheConfig(t *testing.T) {
	s, l := newServer()
	l.Hold(stray, "10.28.36.8")
	renew := message(web1, request, ciaddr("10.28.36.7"))
	play(t, s, []step{
		{"it comes back with the old one", message(web1, request, requested("10.28.36.7")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it renews", renew, "ACK", "10.28.36.7", dhcp.Acknowledged},
	})
	wantHeld(t, l, web1, "10.28.36.7")
	play(t, s, []step{
		{"it renews again", renew, "ACK", "10.28.36.7", dhcp.Acknowledged},
		{"its system looks for an address anew", message(web1, discover, option(55, 1, 3, 6)), "OFFER", "10.28.36.7", dhcp.Offered},
		{"it boots", message(web1, discover, rom), "OFFER", "10.28.36.1", dhcp.Offered},
		{"a boot program renews", message(web1, request, rom, ciaddr("10.28.36.7")), "NAK", "0.0.0.0", dhcp.Refused},
	})
	wantHeld(t, l, web1, "")
	play(t, s, []step{
		{"it renews what somebody else has", message(web1, request, ciaddr("10.28.36.8")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it renews the router's address", message(web1, request, ciaddr("10.28.0.1")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it renews ours", message(web1, request, ciaddr("10.28.0.2")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it renews everybody's", message(web1, request, ciaddr("10.28.255.255")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it renews nobody's", message(web1, request, ciaddr("10.28.0.0")), "NAK", "0.0.0.0", dhcp.Refused},
		{"unknown hardware renews what it never had", message(stray, request, ciaddr("10.28.36.9")), "NAK", "0.0.0.0", dhcp.Refused},
	})
}

// TestRenewalOfSomebodysAddress is W12: a node that renewed the address of a DNS server,
// of a time server or of a range got it. It keeps what it was given, and what nobody has.
func TestRenewalOfSomebodysAddress(t *testing.T) {
	s, l := newServer()
	s.Farm = farmOf(t, `
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.53, 10.28.0.54], relays: [10.28.0.200]}]
tags:
  all: {dhcpOptions: {ntp-server: [10.28.0.123, 10.28.0.124], 121: "0.0.0.0/0=10.28.0.254"}}
  other: {dhcpOptions: {log-server: "10.28.0.20,10.28.0.21"}, loaders: [{firmware: bios, loader: a, server: 10.28.0.69}]}
pools:
  - name: web
    image: debian
    nodes:
      - {name: web1, macs: ["52:54:00:00:00:01"], ip: 10.28.36.1}
      - {name: web2, macs: ["52:54:00:00:00:02"], ip: 10.28.36.2, dhcpOptions: {150: 10.28.0.150}}
  - {name: arm, catchall: true, image: debian, match: {arch: 11}, range: 10.28.73.1-10.28.73.99}
  - {name: lobby, catchall: true, image: debian, range: 10.28.72.1-10.28.72.99}
`)
	relay := giaddr("10.28.0.254")
	for _, somebodys := range []string{
		"10.28.0.1", "10.28.0.2", "10.28.0.53", "10.28.0.54", "10.28.0.123", "10.28.0.124", "10.28.0.254", "10.28.0.20", "10.28.0.21",
		"10.28.0.69", "10.28.0.150", "10.28.0.200", "10.28.36.2", "10.28.72.1", "10.28.72.50", "10.28.73.99", "10.28.0.0", "10.28.255.255",
	} {
		play(t, s, []step{
			{"renews " + somebodys, message(web1, request, ciaddr(somebodys)), "NAK", "0.0.0.0", dhcp.Refused},
			{"rebinds " + somebodys, message(web1, request, relay, ciaddr(somebodys)), "NAK", "0.0.0.0", dhcp.Refused},
			{"comes back with " + somebodys, message(web1, request, requested(somebodys)), "NAK", "0.0.0.0", dhcp.Refused},
		})
	}
	wantHeld(t, l, web1, "")
	play(t, s, []step{
		{"renews its own", message(web1, request, ciaddr("10.28.36.1")), "ACK", "10.28.36.1", dhcp.Acknowledged},
		{"renews what nobody has", message(web1, request, ciaddr("10.28.36.7")), "ACK", "10.28.36.7", dhcp.Acknowledged},
	})
	l.Hold(web1b, "10.28.72.50")
	play(t, s, []step{{"renews its lease of a range", message(web1b, request, ciaddr("10.28.72.50")), "ACK", "10.28.72.50", dhcp.Acknowledged}})
}

func TestALeaseOfAnotherWireIsNotKept(t *testing.T) {
	s, l := newServer()
	l.Hold(web1, "192.168.1.7")
	play(t, s, []step{
		{"it renews", message(web1, request, ciaddr("192.168.1.7")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it looks for an address", message(web1, discover), "OFFER", "10.28.36.1", dhcp.Offered},
	})
}

// TestKnownByOtherThanMAC: a node that is identified by the port of its switch
// leases its own address, so that HTTP finds it by its MAC.
func TestKnownByOtherThanMAC(t *testing.T) {
	s, l := newServer()
	s.Farm = farmFunc(func(p *resolve.Plan) { p.Matched = "circuitID" })
	play(t, s, []step{
		{"it looks for an address", message(web1, discover), "OFFER", "10.28.36.1", dhcp.Offered},
		{"it takes it", message(web1, request, serverID(serverAddr), requested("10.28.36.1")), "ACK", "10.28.36.1", dhcp.Acknowledged},
	})
	wantHeld(t, l, web1, "10.28.36.1")
	play(t, s, []step{
		{"it renews", message(web1, request, ciaddr("10.28.36.1")), "ACK", "10.28.36.1", dhcp.Acknowledged},
		{"it finds it in use", message(web1, decline, serverID(serverAddr), requested("10.28.36.1")), "", "", dhcp.Declined},
	})
	wantHeld(t, l, web1, "")
	play(t, s, []step{{"it is offered it again", message(web1, discover), "OFFER", "10.28.36.1", dhcp.Offered}})

	s.Leases = nil
	_, x := s.Reply(on(t, message(web1, request, requested("10.28.36.1"))), noon)
	if x.Decision != dhcp.NoAddress || x.Err == nil {
		t.Errorf("without a lease store: got %q, %v", x.Decision, x.Err)
	}
}

func TestDecline(t *testing.T) {
	s, l := newServer()
	play(t, s, []step{
		{"a stray looks for an address", message(stray, discover), "OFFER", "10.28.72.10", dhcp.Offered},
		{"it finds it in use", message(stray, decline, serverID(serverAddr), requested("10.28.72.10")), "", "", dhcp.Declined},
		{"it gets another", message(stray, discover), "OFFER", "10.28.72.12", dhcp.Offered},
		{"it declines what it was not given", message(stray, decline, serverID(serverAddr), requested("10.28.72.99")), "", "", dhcp.Unusable},
		{"it declines nothing", message(stray, decline, serverID(serverAddr)), "", "", dhcp.Unusable},
		{"web1 declines what it was not given", message(web1, decline, serverID(serverAddr), requested("10.28.72.12")), "", "", dhcp.Unusable},
		{"it declines nothing", message(web1, decline, serverID(serverAddr)), "", "", dhcp.Unusable},
	})
	if !l.Declined[netip.MustParseAddr("10.28.72.10")] || len(l.Declined) != 1 {
		t.Errorf("got %v declined", l.Declined)
	}
	_, x := s.Reply(on(t, message(web1, decline, serverID(serverAddr), requested("10.28.36.1"))), noon)
	if x.Decision != dhcp.Declined || !strings.Contains(x.Warning, "answers ARP") {
		t.Errorf("a node declines its own address: got %q, warning %q", x.Decision, x.Warning)
	}
	s.Leases = nil
	play(t, s, []step{
		{"without a lease store", message(web1, decline, serverID(serverAddr), requested("10.28.72.10")), "", "", dhcp.Unusable},
		{"release without a lease store", message(web1, release, serverID(serverAddr), ciaddr("10.28.36.1")), "", "", dhcp.Released},
		{"boot without a lease store", message(web1, discover, rom), "OFFER", "10.28.36.1", dhcp.Offered},
	})
}

// TestOtherClientID: who has the MAC of a machine, but another client identifier, takes no lease
// from it. Boot programs of one machine have several: the last one counts.
func TestOtherClientID(t *testing.T) {
	s, l := newServer()
	s.Farm = farmOf(t, `
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: lobby, catchall: true, image: debian, range: 10.28.72.10-10.28.72.20}]
`)
	id := func(text string) dhcpv4.Modifier { return option(61, []byte(text)...) }
	const at = "10.28.72.10"
	play(t, s, []step{
		{"a ROM", message(stray, discover, id("\x00rom")), "OFFER", at, dhcp.Offered},
		{"", message(stray, request, serverID(serverAddr), requested(at), id("\x00rom")), "ACK", at, dhcp.Acknowledged},
		{"the system behind it", message(stray, request, serverID(serverAddr), requested(at), id("\xffsystem")), "ACK", at, dhcp.Acknowledged},
		{"another client", message(stray, release, serverID(serverAddr), ciaddr(at), id("\xffother")), "", "", dhcp.Unusable},
		{"the ROM", message(stray, release, serverID(serverAddr), ciaddr(at), id("\x00rom")), "", "", dhcp.Unusable},
		{"another declines it", message(stray, decline, serverID(serverAddr), requested(at), id("\xffother")), "", "", dhcp.Unusable},
	})
	wantHeld(t, l, stray, at)
	play(t, s, []step{{"the system", message(stray, release, serverID(serverAddr), ciaddr(at), id("\xffsystem")), "", "", dhcp.Released}})
	wantHeld(t, l, stray, "")
}

// TestCommitFails: the store refuses the lease, or fails.
func TestCommitFails(t *testing.T) {
	take := message(stray, request, serverID(serverAddr), requested("10.28.72.10"))
	for _, tt := range []struct {
		name     string
		fail     func(*leases)
		reply    string
		decision dhcp.Decision
	}{
		{"somebody else has it", func(l *leases) { l.Hold(web1, "10.28.72.10") }, "NAK", dhcp.Refused},
		{"the range is full", func(l *leases) { l.OfferErr = pools.ErrRefused }, "NAK", dhcp.Refused},
		{"the disk is gone", func(l *leases) { l.CommitErr = errDisk }, "", dhcp.NoAddress},
		{"the disk goes while it waits", func(l *leases) { l.DiskErr = errDisk }, "ACK", dhcp.Acknowledged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, l := newServer()
			tt.fail(l)
			r, x := s.Reply(on(t, take), noon)
			if x.Reply != tt.reply || x.Decision != tt.decision {
				t.Errorf("got %q, %q, want %q, %q", x.Reply, x.Decision, tt.reply, tt.decision)
			}
			if r != nil && strings.Contains(string(r.Options[56]), web1.String()) {
				t.Errorf("the client is told who has the address: %q", r.Options[56])
			}
			if err := s.wait(); !errors.Is(err, l.DiskErr) {
				t.Errorf("wait: got %v, want %v", err, l.DiskErr)
			}
		})
	}
}

func TestFresh(t *testing.T) {
	s, l := newServer()
	for _, tt := range []struct {
		name   string
		packet *dhcpv4.DHCPv4
		want   bool
	}{
		{"a new machine", message(stray, discover), true},
		{"it asks again", message(stray, discover), false},
		{"a fixed node", message(web1, discover), false},
	} {
		if s.Reply(on(t, tt.packet), noon); s.last.Fresh != tt.want {
			t.Errorf("%s: got %t", tt.name, s.last.Fresh)
		}
	}
	l.Hold(web1b, "10.28.72.77")
	if s.Reply(on(t, message(web1b, discover)), noon); s.last.Fresh {
		t.Error("a lease that is kept is fresh")
	}
}

// counting counts the calls of Resolve and Holds for one packet.
type counting struct {
	farm
	*leases
	resolved, held int
}

func (c *counting) Resolve(q resolve.Query) *resolve.Plan { c.resolved++; return c.farm.Resolve(q) }

func (c *counting) Holds(m pools.MAC, now time.Time) (netip.Addr, bool) {
	c.held++
	return c.leases.Holds(m, now)
}

// TestAskedOnce: the server resolves the machine of a packet once, and reads
// its lease at most once.
func TestAskedOnce(t *testing.T) {
	for _, mode := range []pools.DHCPMode{pools.DHCPFull, pools.DHCPProxy} {
		for _, in := range []*dhcpv4.DHCPv4{
			message(web1, discover), message(web1, discover, rom), message(stray, discover), message(stray, discover, rom),
			message(web1, request, serverID(serverAddr), requested("10.28.36.1")),
			message(stray, request, serverID(serverAddr), requested("10.28.72.10")),
			message(stray, request, ciaddr("10.28.72.10")), message(stray, request, ciaddr("10.28.72.99")),
			message(stray, request, giaddr("10.28.0.254"), ciaddr("10.30.72.10")), message(web1, inform, ciaddr("10.28.36.1")),
			message(stray, decline, serverID(serverAddr), requested("10.28.72.10")), message(stray, release, serverID(serverAddr), ciaddr("10.28.72.10")),
		} {
			s, l := newServer()
			l.Hold(stray, "10.30.72.10")
			c := &counting{leases: l}
			s.Farm, s.Leases, s.Mode = c, c, mode
			if s.Reply(on(t, in), noon); c.resolved != 1 || c.held > 1 {
				t.Errorf("%s in mode %q: resolved %d times, lease asked for %d times", in.MessageType(), mode, c.resolved, c.held)
			}
		}
	}
}

// TestInformWithoutCiaddr: the address is the source of the packet, which [dhcp.Senders] has
// judged.
func TestInformWithoutCiaddr(t *testing.T) {
	for _, tt := range []struct {
		name, from string
		mods       []dhcpv4.Modifier
		want       string // destination, empty for silence
	}{
		{"from its address", "10.28.36.1", nil, "10.28.36.1:68"},
		{"from another of the network", "10.28.5.5", nil, "10.28.5.5:68"},
		{"from no address", "", nil, ""},
		{"from another network", "192.168.1.7", nil, ""},
		{"through a relay agent", "10.28.0.254", []dhcpv4.Modifier{giaddr("10.28.0.254")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newServer()
			var req dhcp.Request
			req.Parse(message(web1, inform, tt.mods...).ToBytes())
			req.From, _ = netip.ParseAddr(tt.from)
			m, x := s.Responder.Reply(&req, noon)
			if (m != nil) != (tt.want != "") {
				t.Fatalf("got %q, %q (%v)", x.Reply, x.Decision, x.Err)
			}
			if m == nil {
				return
			}
			if to, hw := m.Destination(); to.String() != tt.want || hw != nil {
				t.Errorf("goes to %s at %q, want %s", to, hw, tt.want)
			}
		})
	}
}
