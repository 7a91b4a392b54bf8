package dhcp_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

// asked is a farm that records the query and has no machine.
type asked struct{ q *resolve.Query }

func (f asked) Resolve(q resolve.Query) *resolve.Plan { *f.q = q; return nil }
func (f asked) WhyNot(resolve.Query) string           { return "nobody is known" }

func TestQuery(t *testing.T) {
	in := message(web1, discover, arch(7), text(60, "PXEClient:Arch:00007"), text(77, "\x03abc\x04kvm1"), option(61, 0, 'm', '1'),
		giaddr("10.28.0.254"), option(82, 1, 4, 'g', 'e', '-', '7', 2, 2, 's', 'w', 99, 1, 0, 6, 1, 'c', 1, 1, 'x', 2, 0))
	in.Options[93] = append(in.Options[93], 0, 9, 1)
	var got resolve.Query
	s := &responder{Responder: dhcp.Responder{Farm: asked{&got}, Address: serverAddr}}
	_, x := s.Reply(on(t, in), noon)
	want := resolve.Query{
		MAC: web1, Firmware: pools.UEFIx64, Link: netip.MustParseAddr("10.28.0.254"), Class: "PXEClient:Arch:00007",
		Relayed: true, UserClass: "abc", ClientID: "\x00m1", CircuitID: "ge-7", RemoteID: "sw", SubscriberID: "c",
	}
	if len(got.Archs) != 2 || got.Archs[0] != 7 || got.Archs[1] != 9 {
		t.Errorf("got architectures %v, want 7 and 9", got.Archs)
	}
	got.Archs = nil
	if !equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if x.Circuit != "ge-7" || x.Remote != "sw" || x.Why != "nobody is known" || !x.Unknown() {
		t.Errorf("told of circuit %q, remote %q, why %q, unknown %t", x.Circuit, x.Remote, x.Why, x.Unknown())
	}
}

func equal(a, b resolve.Query) bool {
	return a.MAC == b.MAC && a.Firmware == b.Firmware && a.IPXE == b.IPXE && a.Link == b.Link && a.Class == b.Class &&
		a.UserClass == b.UserClass && a.ClientID == b.ClientID && a.CircuitID == b.CircuitID && a.RemoteID == b.RemoteID &&
		a.SubscriberID == b.SubscriberID && a.Relayed == b.Relayed
}

func TestUserClasses(t *testing.T) {
	var got resolve.Query
	s := &responder{Responder: dhcp.Responder{Farm: asked{&got}, Address: serverAddr}}
	for in, want := range map[string]string{
		"":              "",
		"iPXE":          "iPXE",
		"\x04iPXE":      "iPXE",
		"\x02ab\x04kvm": "\x02ab\x04kvm", // not a list: the second text is cut off
		"bare":          "bare",
		"\x00":          "\x00",
	} {
		s.Reply(on(t, message(web1, discover, text(77, in))), noon)
		if got.UserClass != want {
			t.Errorf("%q: got %q, want %q", in, got.UserClass, want)
		}
	}
}

func TestLink(t *testing.T) {
	relayed, selects := giaddr("10.1.0.254"), option(82, 5, 4, 10, 2, 0, 0)
	chooses := option(118, 10, 3, 0, 0)
	for _, tt := range []struct {
		name string
		in   *dhcpv4.DHCPv4
		want string
	}{
		{"directly", message(web1, discover), "10.28.0.2"},
		{"through a relay", message(web1, discover, relayed), "10.1.0.254"},
		{"a relay that selects", message(web1, discover, relayed, selects), "10.2.0.0"},
		{"a client that selects", message(web1, discover, chooses), "10.3.0.0"},
		{"both select", message(web1, discover, relayed, selects, chooses), "10.2.0.0"},
		{"renewing past the relay", message(web1, request, ciaddr("10.1.0.7")), "10.1.0.7"},
		{"rebinding through it", message(web1, request, ciaddr("10.1.0.7"), relayed), "10.1.0.254"},
		{"releasing past the relay", message(web1, release, serverID(serverAddr), ciaddr("10.1.0.7")), "10.1.0.7"},
		{"informing", message(web1, inform, ciaddr("10.1.0.7")), "10.1.0.7"},
		{"choosing us with ciaddr set", message(web1, request, serverID(serverAddr), ciaddr("10.1.0.7")), "10.28.0.2"},
		{"rebooting with ciaddr set", message(web1, request, requested("10.1.0.7"), ciaddr("10.1.0.7")), "10.28.0.2"},
		{"looking for an address with ciaddr set", message(web1, discover, ciaddr("10.1.0.7")), "10.28.0.2"},
		{"renewing everybody's address", message(web1, request, ciaddr("255.255.255.255")), "10.28.0.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got resolve.Query
			s := &responder{Responder: dhcp.Responder{Farm: asked{&got}, Address: serverAddr}}
			s.Reply(on(t, tt.in), noon)
			if got.Link.String() != tt.want {
				t.Errorf("got %s, want %s", got.Link, tt.want)
			}
		})
	}
}

// TestBrokenOptionsOfTheNetwork (W14): a declared machine is answered whatever its relay
// agent adds, and the log has a warning. Of a broken option 82 no identifier counts.
func TestBrokenOptionsOfTheNetwork(t *testing.T) {
	s, _ := newServer()
	answered := func(t *testing.T, packet []byte, want string) {
		t.Helper()
		r, x := s.handle(packet, noon)
		if r == nil || x.Decision != dhcp.Offered || !strings.Contains(x.Warning, want) || x.Level() != slog.LevelWarn {
			t.Errorf("got reply %v, decision %q, error %v, warning %q, want %q in it", r, x.Decision, x.Err, x.Warning, want)
		}
		if strings.HasSuffix(want, "is cut off") && x.Circuit+x.Remote != "" {
			t.Errorf("got circuit %q, remote %q of half an option", x.Circuit, x.Remote)
		}
	}
	for name, value := range map[string][]byte{
		"half a header":                {1},
		"cut off":                      {1, 4, 'g', 'e'},
		"cut off after a good one":     {1, 1, 'x', 2, 255},
		"a link of three bytes":        {5, 3, 10, 0, 0},
		"a link that is everybody":     {5, 4, 255, 255, 255, 255},
		"a link of nobody":             {5, 4, 0, 0, 0, 0},
		"a server of five bytes":       {11, 5, 10, 0, 0, 1, 1},
		"a server that is a group":     {11, 4, 224, 0, 0, 1},
		"an IPv6 address as the link":  append([]byte{5, 16}, make([]byte, 16)...),
		"an end that no standard has":  {1, 1, 'x', 255},
		"padding that no standard has": {1, 1, 'x', 0},
	} {
		t.Run(name, func(t *testing.T) {
			want := "is cut off"
			if value[0] == 5 || value[0] == 11 {
				want = "is not an IPv4 address of one host"
			}
			answered(t, message(web1, discover, giaddr("10.28.0.254"), option(82, value...)).ToBytes(), want)
		})
	}
	for name, value := range map[string][]byte{"empty": nil, "short": {10, 1}, "long": make([]byte, 300), "everybody": {255, 255, 255, 255}} {
		t.Run("subnet selection: "+name, func(t *testing.T) {
			answered(t, message(web1, discover, option(118, value...)).ToBytes(), "option 118")
			if s.last != nil && dhcp.ReplyOption(s.last, 118) != nil {
				t.Error("it comes back")
			}
		})
	}
	t.Run("the packet ends in option 82", func(t *testing.T) {
		b := message(web1, discover, giaddr("10.28.0.254"), text(60, "PXEClient")).ToBytes()
		end := bytes.LastIndexByte(b, 't') + 1
		answered(t, append(bytes.Clone(b[:end]), 82, 10, 1, 4, 'g', 'e'), "option 82 is cut off")
	})
	t.Run("half of the identity of another", func(t *testing.T) {
		s, l := newServer()
		s.Farm = farmOf(t, wires)
		s.Reply(on(t, message(stray, request, giaddr("10.1.0.254"), requested("10.1.0.8"), option(82, 1, 4, 'g', 'e', '-', '7', 2, 9))), noon)
		wantHeld(t, l, stray, "")
	})
}

// wires has three networks: that of the server, one behind a relay, and one
// with two subnets behind a relay.
const wires = `
subnets:
  - {cidr: 10.28.0.0/16, router: 10.28.0.1}
  - {cidr: 10.1.0.0/24, router: 10.1.0.1, domain: one.example}
  - {cidr: 10.2.0.0/24, router: 10.2.0.1, network: two}
  - {cidr: 10.3.0.0/24, router: 10.3.0.1, network: two}
pools:
  - name: far
    image: debian
    nodes:
      - {name: web1, macs: ["52:54:00:00:00:01"], ip: 10.1.0.7}
      - {name: rack7, match: {circuitID: ge-7}, ip: 10.1.0.8}
      - {name: web2, macs: ["52:54:00:00:00:02"], ip: 10.3.0.7}
`

func TestWires(t *testing.T) {
	s, l := newServer()
	s.Farm = farmOf(t, wires)
	one, two := giaddr("10.1.0.254"), giaddr("10.2.0.254")
	port := option(82, 1, 4, 'g', 'e', '-', '7')
	play(t, s, []step{
		{"web1 asks through its relay", message(web1, discover, one), "OFFER", "10.1.0.7", dhcp.Offered},
		{"it asks from another wire", message(web1, discover), "", "", dhcp.NotOurs},
		{"it renews past the relay", message(web1, request, ciaddr("10.1.0.7")), "ACK", "10.1.0.7", dhcp.Acknowledged},
		{"it comes back with an address of another wire", message(web1, request, one, requested("10.2.0.7")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it renews an address of another wire", message(web1, request, one, ciaddr("10.2.0.7")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it releases past the relay", message(web1, release, serverID(serverAddr), ciaddr("10.1.0.7")), "", "", dhcp.Released},
		{"a stray at a known port", message(stray, discover, one, port), "OFFER", "10.1.0.8", dhcp.Offered},
		{"takes the address", message(stray, request, one, port, serverID(serverAddr), requested("10.1.0.8")), "ACK", "10.1.0.8", dhcp.Acknowledged},
		{"a stray at no known port", message(stray, discover, one), "", "", dhcp.NotOurs},
		{"web2 asks from the other subnet of its wire", message(web1b, discover, two), "OFFER", "10.3.0.7", dhcp.Offered},
		{"it renews an address of the other subnet", message(web1b, request, two, ciaddr("10.2.0.9")), "ACK", "10.2.0.9", dhcp.Acknowledged},
		{"it comes back with one of another wire", message(web1b, request, two, requested("10.1.0.9")), "NAK", "0.0.0.0", dhcp.Refused},
	})
	wantHeld(t, l, stray, "10.1.0.8")
	if _, x := s.Reply(on(t, message(web1, discover)), noon); x.Why == "" || x.Plan != nil {
		t.Errorf("asking from another wire: got why %q, plan %v", x.Why, x.Plan)
	}
	if _, x := s.Reply(on(t, message(stray, discover, one, port)), noon); x.Why != "known by circuitID" {
		t.Errorf("a known port: got why %q", x.Why)
	}
}

// TestOptionsOfTheSubnetGiven: the network options of a reply are those of the
// subnet of the given address, not of the plan's subnet.
func TestOptionsOfTheSubnetGiven(t *testing.T) {
	s, _ := newServer()
	s.Farm = farmOf(t, wires)
	r, _ := s.Reply(on(t, message(web1b, request, giaddr("10.2.0.254"), ciaddr("10.2.0.9"))), noon)
	if got := netip.AddrFrom4([4]byte(r.Options[3])); got != netip.MustParseAddr("10.2.0.1") {
		t.Errorf("got router %s", got)
	}
	if got := netip.AddrFrom4([4]byte(r.Options[28])); got != netip.MustParseAddr("10.2.0.255") {
		t.Errorf("got broadcast address %s", got)
	}
}

// TestServerIdentifierOverride: the client takes the relay for the server (RFC
// 5107).
func TestServerIdentifierOverride(t *testing.T) {
	s, _ := newServer()
	override := option(82, 1, 1, 'x', 11, 4, 10, 28, 0, 254)
	relay, us := netip.MustParseAddr("10.28.0.254"), giaddr("10.28.0.254")
	for _, tt := range []struct {
		name  string
		in    *dhcpv4.DHCPv4
		reply string
	}{
		{"discover", message(web1, discover, us, override), "OFFER"},
		{"request to the relay", message(web1, request, us, override, serverID(relay), requested("10.28.36.1")), "ACK"},
		{"request to us", message(web1, request, us, override, serverID(serverAddr), requested("10.28.36.1")), "ACK"},
		{"request to another", message(web1, request, us, override, serverID(otherAddr), requested("10.28.36.1")), ""},
		{"request to the relay without its option", message(web1, request, us, serverID(relay), requested("10.28.36.1")), ""},
		{"nak", message(web1, request, us, override, requested("10.28.36.2")), "NAK"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, x := s.Reply(on(t, tt.in), noon)
			if x.Reply != tt.reply {
				t.Fatalf("got %q (%q), want %q", x.Reply, x.Decision, tt.reply)
			}
			if r != nil && r.ServerIdentifier().String() != relay.String() {
				t.Errorf("got server identifier %s, want %s", r.ServerIdentifier(), relay)
			}
		})
	}
	play(t, s, []step{
		{"release to the relay", message(web1, release, us, override, serverID(relay), ciaddr("10.28.36.1")), "", "", dhcp.Released},
		{"decline to the relay", message(web1, decline, us, override, serverID(relay), requested("10.28.36.1")), "", "", dhcp.Declined},
		{"release to another", message(web1, release, us, override, serverID(otherAddr), ciaddr("10.28.36.1")), "", "", dhcp.OtherServer},
	})
}

// TestNetworkOfNoSubnet is W7: behind a relay agent that is in no subnet, unknown
// hardware got an address of another network. A declared node gets its own.
func TestNetworkOfNoSubnet(t *testing.T) {
	s, _ := newServer()
	s.Farm = farmOf(t, wires+"  - {name: lobby, catchall: true, image: debian, range: 10.28.72.10-10.28.72.99}\n")
	relayed, selects, chooses := giaddr("172.20.0.1"), option(82, 5, 4, 172, 20, 0, 0), option(118, 172, 20, 0, 0)
	at := requested("10.28.72.10")
	play(t, s, []step{
		{"a relay agent of no subnet", message(stray, discover, relayed), "", "", dhcp.NotOurs},
		{"its ROM", message(stray, discover, rom, relayed), "", "", dhcp.NotOurs},
		{"it comes back", message(stray, request, relayed, at), "", "", dhcp.NotOurs},
		{"it takes an address", message(stray, request, relayed, serverID(serverAddr), at), "", "", dhcp.NotOurs},
		{"it rebinds", message(stray, request, relayed, ciaddr("10.28.72.10")), "", "", dhcp.NotOurs},
		{"the relay agent selects a network of no subnet", message(stray, discover, giaddr("10.28.0.254"), selects), "", "", dhcp.NotOurs},
		{"so does the client", message(stray, discover, chooses), "", "", dhcp.NotOurs},
		{"a relay agent of no subnet selects one of ours", message(stray, discover, relayed, option(82, 5, 4, 10, 28, 0, 0)), "OFFER", "", dhcp.Offered},
		{"without a relay agent", message(stray, discover), "OFFER", "", dhcp.Offered},
		{"a declared node", message(web1, discover, relayed), "OFFER", "10.1.0.7", dhcp.Offered},
		{"it takes the address", message(web1, request, relayed, serverID(serverAddr), requested("10.1.0.7")), "ACK", "10.1.0.7", dhcp.Acknowledged},
	})
}

func TestSubnetSelectionComesBack(t *testing.T) {
	s, _ := newServer()
	r, _ := s.Reply(on(t, message(web1, discover, option(118, 10, 28, 5, 0))), noon)
	if got := string(r.Options[118]); got != "\x0a\x1c\x05\x00" {
		t.Errorf("got %q", got)
	}
}

// TestRenewalOfAnotherNetwork: a relay that copies the packets that it routes
// claims that the machine is on its far side.
func TestRenewalOfAnotherNetwork(t *testing.T) {
	s, l := newServer()
	l.Hold(stray, "10.30.72.10")
	play(t, s, []step{
		{"a copy", message(stray, request, giaddr("10.28.0.254"), ciaddr("10.30.72.10")), "", "", dhcp.Unusable},
		{"it comes back there", message(stray, request, giaddr("10.28.0.254"), requested("10.30.72.10")), "NAK", "", dhcp.Refused},
	})
	wantHeld(t, l, stray, "10.30.72.10")
}

// TestRelayPort (RFC 8357): a relay agent that sends option 82.19 receives the answer at
// the port that it sent from.
func TestRelayPort(t *testing.T) {
	s, _ := newServer()
	relayed, port := giaddr("10.28.0.254"), option(82, 1, 1, 'x', 19, 0)
	for _, tt := range []struct {
		name string
		in   *dhcpv4.DHCPv4
		from uint16
		want string
	}{
		{"a discover", message(web1, discover, relayed, port), 1067, "10.28.0.254:1067"},
		{"a request", message(web1, request, relayed, port, requested("10.28.36.1")), 1067, "10.28.0.254:1067"},
		{"a nak", message(web1, request, relayed, port, requested("10.28.36.9")), 1067, "10.28.0.254:1067"},
		{"an inform", message(web1, inform, relayed, port, ciaddr("10.28.36.1")), 1067, "10.28.0.254:1067"},
		{"a sub-option with a value", message(web1, discover, relayed, option(82, 19, 2, 4, 43)), 1067, "10.28.0.254:1067"},
		{"the usual port", message(web1, discover, relayed, port), 67, "10.28.0.254:67"},
		{"an unknown port", message(web1, discover, relayed, port), 0, "10.28.0.254:67"},
		{"without the sub-option", message(web1, discover, relayed, option(82, 1, 1, 'x')), 1067, "10.28.0.254:67"},
		{"without a relay agent", message(web1, discover, port), 1068, "10.28.36.1:68"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var req dhcp.Request
			req.Parse(tt.in.ToBytes())
			req.Port = tt.from
			m, x := s.Responder.Reply(&req, noon)
			if m == nil {
				t.Fatalf("got silence, %q: %v", x.Decision, x.Err)
			}
			if to, _ := m.Destination(); to.String() != tt.want {
				t.Errorf("goes to %s, want %s", to, tt.want)
			}
			if got := string(dhcp.ReplyOption(m, 82)); got != string(tt.in.Options[82]) {
				t.Errorf("got option 82 %q", got)
			}
		})
	}
}
