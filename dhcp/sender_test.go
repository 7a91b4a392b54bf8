package dhcp_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

// The hosts of the tests on senders. The wire is 10.28.0.0/16.
var (
	relayMAC  = mac("0a:00:00:00:00:fe") // 10.28.0.254, and a router
	bridgeMAC = mac("0a:00:00:00:00:bb") // of no machine
	noMAC     pools.MAC
)

// owners has web1 with two cards at 10.28.36.1, and stray with a lease of 10.28.72.10;
// far is behind a router.
type owners struct{}

var farMAC = mac("52:54:00:77:09:09")

func (owners) Owns(a netip.Addr, m pools.MAC) (owned, own bool) {
	switch a.String() {
	case "10.28.36.1":
		return true, m == web1 || m == web1b
	case "10.28.72.10":
		return true, m == stray
	case "10.29.1.7":
		return true, m == farMAC
	}
	return false, false
}

func (owners) Declares(m pools.MAC) bool {
	return m == web1 || m == web1b || m == farMAC || m == mac("00:00:5e:00:01:07")
}

func (owners) Leased(m pools.MAC) []netip.Addr {
	if m == stray {
		return []netip.Addr{netip.MustParseAddr("10.28.72.10")}
	}
	return nil
}

func (owners) InSubnet(a netip.Addr) bool {
	return netip.MustParsePrefix("10.28.0.0/15").Contains(a)
}

func (owners) InRange(a netip.Addr) bool { return netip.MustParsePrefix("10.28.72.0/24").Contains(a) }

func (owners) ListsRelay(a netip.Addr) bool {
	return a.String() == "172.16.0.1" || a.String() == "10.28.0.253"
}

func (owners) OneNetwork(link, a netip.Addr) bool {
	return netip.PrefixFrom(link, 16).Masked().Contains(a)
}

func hops(n byte) dhcpv4.Modifier { return func(d *dhcpv4.DHCPv4) { d.HopCount = n } }

// relayedBy makes a packet one of a relay agent.
func relayedBy(a string) dhcpv4.Modifier {
	return func(d *dhcpv4.DHCPv4) { giaddr(a)(d); d.HopCount = 1 }
}

// TestSenders has the rule for packets that count. "ARP of" is a packet that counts
// only if the host answers.
func TestSenders(t *testing.T) {
	all := func(m pools.MAC) dhcp.Sender {
		return dhcp.Sender{MAC: m, Addr: netip.IPv4Unspecified(), Broadcast: true}
	}
	alone := func(m pools.MAC) dhcp.Sender { return dhcp.Sender{MAC: m, Addr: netip.IPv4Unspecified()} }
	from := func(m pools.MAC, a string) dhcp.Sender {
		return dhcp.Sender{MAC: m, Addr: netip.MustParseAddr(a), Port: 67}
	}
	known := func(a string) dhcp.Sender { return dhcp.Sender{Addr: netip.MustParseAddr(a), Port: 67, Relay: true} }
	user := func(s dhcp.Sender) dhcp.Sender { s.Port = 40_000; return s }
	boot := func(s dhcp.Sender) dhcp.Sender { s.BootPort = true; return s }
	ours := serverID(serverAddr)
	for _, tt := range []struct {
		name   string
		from   dhcp.Sender
		packet *dhcpv4.DHCPv4
		want   string // "counts", "ARP of", "relay", or words of the reason
	}{
		// Without an address.
		{"firmware", all(web1), message(web1, discover, rom), "counts"},
		{"firmware behind a bridge with a MAC of its own", all(bridgeMAC), message(web1, discover, rom), "counts"},
		{"a client that chooses", all(web1), message(web1, request, ours, requested("10.28.36.1")), "counts"},
		{"a client that comes back", all(web1), message(web1, request, requested("10.28.36.1")), "counts"},
		{"a ROM that fills ciaddr", all(stray), message(stray, request, ours, requested("10.28.72.11"), ciaddr("10.28.72.11")), "counts"},
		{"a ROM that fills ciaddr alone", all(stray), message(stray, request, ciaddr("10.28.72.11")), "counts"},
		{"a ROM that uses its OFFER too early", from(bridgeMAC, "10.28.72.11"), message(bridgeMAC, request, ours, requested("10.28.72.11"), ciaddr("10.28.72.11")), "counts"},
		{"a client that declines", all(stray), message(stray, decline, ours, requested("10.28.72.10")), "counts"},
		{"BOOTP", all(web1), message(web1, discover, noType), "counts"},
		{"InfiniBand behind a gateway", all(bridgeMAC), message(web1, discover, infiniBand(web1)), "counts"},
		{"to the server alone", alone(web1), message(web1, discover), "counts"},
		{"to the server alone in another's frame", alone(bridgeMAC), message(web1, discover), "from no address"},

		// From an address.
		{"a node renews", from(web1, "10.28.36.1"), message(web1, request, ciaddr("10.28.36.1")), "counts"},
		{"its other card renews", from(web1b, "10.28.36.1"), message(web1b, request, ciaddr("10.28.36.1")), "counts"},
		{"and sends by the first card", from(web1, "10.28.36.1"), message(web1b, request, ciaddr("10.28.36.1")), "counts"},
		{"a lease is renewed", from(stray, "10.28.72.10"), message(stray, request, ciaddr("10.28.72.10")), "counts"},
		{"a lease is released", from(stray, "10.28.72.10"), message(stray, release, ours, ciaddr("10.28.72.10")), "counts"},
		{"a lease is declined from its address", from(stray, "10.28.72.10"), message(stray, decline, ciaddr("10.28.72.10")), "counts"},
		{"an inform that leaves ciaddr empty", from(stray, "10.28.72.10"), message(stray, inform), "counts"},
		{"a static host that does so", from(foreign, "10.28.5.5"), message(foreign, inform), "ARP of 10.28.5.5 at " + foreign.String()},
		{"BOOTP from an address", from(web1, "10.28.36.1"), message(web1, discover, noType), "a BOOTP request from an address"},
		{"an inform", from(stray, "10.28.72.10"), message(stray, inform, ciaddr("10.28.72.10")), "counts"},
		{"behind a bridge with a MAC of its own", from(bridgeMAC, "10.28.72.10"), message(stray, request, ciaddr("10.28.72.10")), "ARP of 10.28.72.10 at " + bridgeMAC.String()},
		{"a renewal past the relay agent", from(relayMAC, "10.29.1.7"), message(farMAC, request, ciaddr("10.29.1.7")), "counts"},
		{"a machine whose address changed in the config renews", from(web1, "10.28.36.7"), message(web1, request, ciaddr("10.28.36.7")), "ARP of 10.28.36.7 at " + web1.String()},
		{"a static host informs", from(foreign, "10.28.5.5"), message(foreign, inform, ciaddr("10.28.5.5")), "ARP of 10.28.5.5 at " + foreign.String()},

		// H1 and H3: pods and routed hosts in the name of others.
		{"a pod plays the firmware of its node", from(web1, "10.28.36.1"), message(web1, discover, rom), "DISCOVER"},
		{"and that of another machine", from(web1, "10.28.36.1"), message(stray, discover), "DISCOVER"},
		{"and fills in its address", from(web1, "10.28.36.1"), message(web1, discover, ciaddr("10.28.36.1")), "DISCOVER"},
		{"a pod plays firmware from nobody's address", from(web1, "10.28.0.250"), message(web1, discover, rom), "DISCOVER"},
		{"a pod has another run on the address of the DNS server", from(web1, "10.28.36.1"), message(stray, request, ciaddr("10.28.0.9")), "another address"},
		{"and forges the source", from(web1, "10.28.0.9"), message(stray, request, ciaddr("10.28.0.9")), "does not have"},
		{"a routed host does", from(relayMAC, "192.168.5.2"), message(stray, request, ciaddr("192.168.5.2")), "does not have"},
		{"and with an address of a subnet", from(relayMAC, "10.29.5.5"), message(web1, request, ciaddr("10.29.5.5")), "does not have"},
		{"a pod asks for more of its node", from(web1, "10.28.36.1"), message(web1, request, ciaddr("10.28.36.1"), requested("10.28.36.9")), "another address"},
		{"a pod renews for another machine", from(web1, "10.28.36.1"), message(stray, request, ciaddr("10.28.36.1")), "of another machine"},
		{"a pod takes an address of the range", from(web1, "10.28.36.1"), message(foreign, request, requested("10.28.72.20")), "another address"},
		{"a pod releases another's lease", from(web1, "10.28.36.1"), message(stray, release, ours, ciaddr("10.28.72.10")), "another address"},
		{"and forges the source", from(web1, "10.28.72.10"), message(stray, release, ours, ciaddr("10.28.72.10")), "rp_filter"},
		{"a pod declines another's lease", from(web1, "10.28.36.1"), message(stray, decline, ours, requested("10.28.72.10")), "another address"},
		{"and forges the source", from(web1, "10.28.72.10"), message(stray, decline, ours, requested("10.28.72.10")), "rp_filter"},
		{"a routed host releases", from(relayMAC, "192.168.5.2"), message(stray, release, ours, ciaddr("10.28.72.10")), "another address"},
		{"a release from an address that is not leased", from(foreign, "10.28.5.5"), message(foreign, release, ours, ciaddr("10.28.5.5")), "does not have"},
		{"a node forwards for a machine behind it", from(web1, "10.29.1.7"), message(farMAC, request, ciaddr("10.29.1.7")), "rp_filter"},

		// Relay agents, and H4: pods that play one.
		{"a relay agent on the wire", from(relayMAC, "10.28.0.254"), message(web1, discover, relayedBy("10.28.0.254")), "ARP of 10.28.0.254 at " + relayMAC.String() + " relay"},
		{"with another address towards its machines", from(relayMAC, "10.28.0.254"), message(web1, discover, relayedBy("10.29.0.1")), "ARP of 10.28.0.254 at " + relayMAC.String() + " relay"},
		{"that was confirmed", known("10.28.0.254"), message(web1, discover, relayedBy("10.29.0.1")), "counts"},
		{"behind a router", from(relayMAC, "10.29.0.1"), message(web1, discover, relayedBy("10.29.0.1")), "counts relay"},
		{"in a listed network", from(relayMAC, "172.16.0.1"), message(web1, discover, relayedBy("172.16.0.1")), "counts relay"},
		{"a listed one, whose packets have another MAC than its ARP", from(relayMAC, "10.28.0.253"), message(web1, discover, relayedBy("10.28.0.253")), "counts relay"},
		{"in another network", from(relayMAC, "172.16.0.2"), message(web1, discover, relayedBy("172.16.0.2")), "subnets[].relays"},
		{"whose machines are in another network", from(relayMAC, "10.28.0.254"), message(web1, discover, relayedBy("172.16.0.2")), "subnets[].relays"},
		{"no hop, on the wire", from(relayMAC, "10.28.0.254"), message(web1, discover, giaddr("10.28.0.254")), "ARP of 10.28.0.254 at " + relayMAC.String() + " relay"},
		{"no hop, listed", from(relayMAC, "172.16.0.1"), message(web1, discover, giaddr("172.16.0.1")), "counts relay"},
		{"no hop, behind a router", from(relayMAC, "10.29.0.1"), message(web1, discover, giaddr("10.29.0.1")), "hop"},
		{"a stranger leased in the router's name", from(stray, "10.28.0.254"), message(web1, discover, relayedBy("10.28.0.254")), "ARP of 10.28.0.254 at " + stray.String() + " relay"},
		{"and in that of a listed agent on the wire", from(stray, "10.28.0.253"), message(web1, discover, relayedBy("10.28.0.253")), "unless ARP of 10.28.72.10 at " + stray.String() + " relay"},
		{"and far away", from(stray, "10.29.0.1"), message(web1, discover, relayedBy("10.29.0.1")), "unless ARP of 10.28.72.10 at " + stray.String() + " relay"},
		{"in the name of a virtual router", all(mac("00:00:5e:00:02:09")), message(mac("00:00:5e:00:02:09"), discover), "virtual router"},
		{"behind a VRRP router", from(mac("00:00:5e:00:01:07"), "10.29.0.1"), message(web1, discover, relayedBy("10.29.0.1")), "counts relay"},
		{"two hops", known("10.28.0.254"), message(web1, discover, relayedBy("10.29.0.1"), hops(2)), "counts"},
		{"a pod plays a relay agent", from(web1, "10.28.36.1"), message(stray, discover, relayedBy("10.28.36.1")), "a node is no relay agent"},
		{"and names the real one", from(web1, "10.28.36.1"), message(stray, request, relayedBy("10.28.0.254")), "a node is no relay agent"},
		{"and forges its address", from(web1, "10.28.0.254"), message(web1, discover, relayedBy("10.28.0.254")), "rp_filter"},
		{"or that of nobody", from(web1, "10.28.0.250"), message(web1, discover, relayedBy("10.28.0.254")), "rp_filter"},
		{"or that of a relay agent far away", from(web1, "10.29.0.1"), message(web1, discover, relayedBy("10.29.0.1")), "rp_filter"},
		{"or that of a listed one", from(web1, "172.16.0.1"), message(web1, discover, relayedBy("172.16.0.1")), "rp_filter"},
		{"a confirmed relay agent with the address of a machine", known("10.28.72.10"), message(web1, discover, relayedBy("10.28.0.254")), "a node is no relay agent"},
		{"and a machine's address as giaddr", known("10.28.0.254"), message(web1, discover, relayedBy("10.28.72.10")), "a node is no relay agent"},
		{"a machine that released its address plays one", from(bridgeMAC, "10.28.72.99"), message(web1, discover, relayedBy("10.28.72.99")), "a node is no relay agent"},
		{"a confirmed relay agent with an address of a range", known("10.28.0.254"), message(web1, discover, relayedBy("10.28.72.99")), "a node is no relay agent"},
		{"a user of a host plays one", user(from(bridgeMAC, "10.28.0.9")), message(web1, discover, relayedBy("10.28.0.9")), "another port"},
		{"a user of a relay agent", user(known("10.28.0.254")), message(web1, discover, relayedBy("10.28.0.254")), "another port"},
		{"a listed relay agent with another port", user(from(relayMAC, "172.16.0.1")), message(web1, discover, relayedBy("172.16.0.1")), "counts relay"},
		{"relayed from no address", all(relayMAC), message(web1, discover, relayedBy("10.28.0.254")), "subnets[].relays"},

		// C1: port 4011 of proxy mode.
		{"port 4011", boot(from(stray, "10.28.72.10")), message(stray, request, rom, ciaddr("10.28.72.10")), "counts"},
		{"port 4011 with ciaddr empty", boot(from(stray, "10.28.72.10")), message(stray, request, rom), "counts"},
		{"port 4011 before the address is noted", boot(from(stray, "10.28.5.5")), message(stray, request, rom, ciaddr("10.28.5.5")), "ARP of 10.28.5.5 at " + stray.String()},
		{"port 4011 from another network of the wire", boot(from(stray, "10.29.5.5")), message(stray, request, rom, ciaddr("10.29.5.5")), "ARP of 10.29.5.5 at " + stray.String()},
		{"port 4011 from another host", boot(from(foreign, "10.28.5.5")), message(stray, request, rom, ciaddr("10.28.5.5")), "does not have"},
		{"port 4011 from a routed host", boot(from(relayMAC, "192.168.5.2")), message(stray, request, rom, ciaddr("192.168.5.2")), "4011"},
		{"port 4011 from a routed machine", boot(from(relayMAC, "10.29.1.7")), message(farMAC, request, rom, ciaddr("10.29.1.7")), "4011"},
		{"port 4011 from no address", boot(all(stray)), message(stray, request, rom), "4011"},
		{"port 4011 through a relay agent", boot(known("10.28.0.254")), message(stray, request, rom, relayedBy("10.28.0.254")), "4011"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &dhcp.Senders{Machines: owners{}, Networks: owners{}, Wire: []netip.Prefix{netip.MustParsePrefix("10.28.0.2/16")}}
			var req dhcp.Request
			req.Parse(tt.packet.ToBytes())
			v := s.Judge(&req, tt.from)
			got := verdict(v)
			if v.Drop == "" && got != tt.want || v.Drop != "" && !strings.Contains(v.Why, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// verdict describes a verdict.
func verdict(v dhcp.Verdict) string {
	got := "counts"
	switch {
	case v.Drop != "":
		return string(v.Drop) + ": " + v.Why
	case v.Confirm.IsValid():
		got = "ARP of " + v.Confirm.String() + " at " + v.By.String()
	case len(v.Unless) > 0:
		got = "unless ARP of " + v.Unless[0].String() + " at " + v.By.String()
	}
	if v.Relay {
		got += " relay"
	}
	return got
}

// TestSubnetSelection: any host can send option 118. It counts within the network that the host
// asks from, and behind a listed relay agent.
func TestSubnetSelection(t *testing.T) {
	direct := dhcp.Sender{MAC: stray, Addr: netip.IPv4Unspecified(), Broadcast: true}
	known := func(a string) dhcp.Sender { return dhcp.Sender{Addr: netip.MustParseAddr(a), Port: 67, Relay: true} }
	here, there := option(118, 10, 28, 5, 0), option(118, 10, 29, 0, 0)
	for _, tt := range []struct {
		name string
		from dhcp.Sender
		in   *dhcpv4.DHCPv4
		want string // the network
		back bool   // the option comes back: it counted
	}{
		{"its own network", direct, message(stray, discover, here), "10.28.5.0", true},
		{"another network", direct, message(stray, discover, there), "10.28.0.2", false},
		{"a network of no subnet", direct, message(stray, discover, option(118, 172, 20, 0, 0)), "10.28.0.2", false},
		{"behind a relay agent there", known("10.29.0.1"), message(stray, discover, relayedBy("10.29.0.1"), there), "10.29.0.0", true},
		{"behind a relay agent elsewhere", known("10.28.0.254"), message(stray, discover, relayedBy("10.28.0.254"), there), "10.28.0.254", false},
		{"behind a listed relay agent", known("172.16.0.1"), message(stray, discover, relayedBy("172.16.0.1"), there), "10.29.0.0", true},
		{"behind one that selects", known("10.28.0.254"), message(stray, discover, relayedBy("10.28.0.254"), option(82, 5, 4, 10, 28, 7, 0), there), "10.28.7.0", false},
		{"renewing", dhcp.Sender{MAC: relayMAC, Addr: netip.MustParseAddr("10.29.1.7")}, message(farMAC, request, ciaddr("10.29.1.7"), here), "10.29.1.7", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got resolve.Query
			s := &dhcp.Senders{Machines: owners{}, Networks: owners{}, Wire: []netip.Prefix{netip.MustParsePrefix("10.28.0.2/16")}}
			var req dhcp.Request
			req.Parse(tt.in.ToBytes())
			if v := s.Judge(&req, tt.from); v.Drop != "" {
				t.Fatalf("dropped: %s", v.Why)
			}
			kept := req.Copy(tt.in.ToBytes())
			m, x := (&dhcp.Responder{Farm: anywhere{asked{&got}}, Address: serverAddr}).Reply(&req, noon)
			if got.Link.String() != tt.want {
				t.Errorf("got the network %s, want %s", got.Link, tt.want)
			}
			if m == nil {
				t.Fatalf("got silence: %+v", x)
			}
			if back := dhcp.ReplyOption(m, 118) != nil; back != tt.back || back == strings.Contains(x.Warning, "option 118") {
				t.Errorf("the option comes back: %t, want %t, warning %q", back, tt.back, x.Warning)
			}
			(&dhcp.Responder{Farm: asked{&got}, Address: serverAddr}).Reply(kept, noon) // as after an ARP probe
			if got.Link.String() != tt.want {
				t.Errorf("got the network %s later, want %s", got.Link, tt.want)
			}
		})
	}
}

// anywhere gives a machine an address wherever it asks.
type anywhere struct{ asked }

func (a anywhere) Resolve(q resolve.Query) *resolve.Plan {
	a.asked.Resolve(q)
	return &resolve.Plan{MAC: q.MAC, Node: "m1", Address: netip.MustParseAddr("10.29.1.7")}
}

// TestMalformedIsJudgedFirst: a packet that is no DHCP message says nothing about its
// sender.
func TestMalformedIsJudgedFirst(t *testing.T) {
	s := &dhcp.Senders{Machines: owners{}, Networks: owners{}}
	for _, b := range [][]byte{nil, make([]byte, 300), make([]byte, 5000)} {
		var req dhcp.Request
		req.Parse(b)
		if v := s.Judge(&req, dhcp.Sender{MAC: noMAC, Addr: netip.IPv4Unspecified()}); v.Drop != dhcp.Malformed || v.Err == nil {
			t.Errorf("%d bytes: got %+v", len(b), v)
		}
	}
}

// TestOption82WithoutRelay: a pod names the port of a node (finding H2). Only a relay
// agent can.
func TestOption82WithoutRelay(t *testing.T) {
	var got resolve.Query
	s := &responder{Responder: dhcp.Responder{Farm: asked{&got}, Address: serverAddr}}
	port := option(82, 1, 4, 'g', 'e', '-', '7', 2, 2, 's', 'w', 6, 1, 'c', 5, 4, 10, 3, 0, 0, 11, 4, 10, 28, 0, 254)
	_, x := s.Reply(on(t, message(web1, request, requested("10.28.36.1"), port)), noon)
	if got.CircuitID+got.RemoteID+got.SubscriberID != "" || got.Link != serverAddr || x.Circuit+x.Remote != "" {
		t.Errorf("got the query %+v and the exchange %q %q, want nothing of the option", got, x.Circuit, x.Remote)
	}
	f, l := newServer()
	f.Farm = farmOf(t, wires)
	f.Reply(on(t, message(stray, request, ciaddr("10.1.0.8"), option(82, 1, 4, 'g', 'e', '-', '7'))), noon)
	wantHeld(t, l, stray, "")
}

// TestAdoption: the address that a declared machine runs on becomes its lease only if
// the config has no use for it (finding H1).
func TestAdoption(t *testing.T) {
	const text = `
subnets:
  - {cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.53], network: one}
  - {cidr: 10.30.0.0/16, router: 10.30.0.1, dns: [10.28.0.54], network: one}
pools:
  - {name: lobby, catchall: true, image: debian, range: 10.28.72.10-10.28.72.250}
  - name: web
    image: debian
    nodes:
      - {name: web1, macs: ["52:54:00:00:00:01"], ip: 10.28.36.1}
      - {name: web2, macs: ["52:54:00:00:00:02"], ip: 10.28.36.2}
`
	for address, want := range map[string]string{
		"10.28.36.7":  "ACK",
		"10.30.36.7":  "ACK",
		"10.28.0.53":  "NAK", // DNS
		"10.28.0.54":  "NAK", // DNS of another subnet
		"10.30.0.1":   "NAK", // router of another subnet
		"10.28.0.2":   "NAK", // the server
		"10.28.72.20": "NAK", // of a range
		"10.28.36.2":  "NAK", // another node's
	} {
		t.Run(address, func(t *testing.T) {
			s, l := newServer()
			s.Farm = farmOf(t, text)
			_, x := s.Reply(on(t, message(web1, request, ciaddr(address))), noon)
			if x.Reply != want {
				t.Fatalf("got %q (%s), want %q", x.Reply, x.Warning, want)
			}
			held := map[bool]string{true: address}[want == "ACK"]
			wantHeld(t, l, web1, held)
		})
	}
	t.Run("from another source", func(t *testing.T) {
		s, l := newServer()
		s.Farm = farmOf(t, text)
		var req dhcp.Request
		req.Parse(message(web1, request, ciaddr("10.28.36.7")).ToBytes())
		if _, x := s.Responder.Reply(&req, noon); x.Reply != "NAK" {
			t.Errorf("got %q, want NAK", x.Reply)
		}
		wantHeld(t, l, web1, "")
	})
}

// TestProxyNotesNoRelayedAddress: a relay agent may have copied the REQUEST of a pod
// (finding C1).
func TestProxyNotesNoRelayedAddress(t *testing.T) {
	s, l := newProxy()
	s.Reply(on(t, message(web1, request, giaddr("10.28.0.254"), serverID(otherAddr), requested("10.28.5.5"))), noon)
	wantHeld(t, l, web1, "")
}

// TestProxyForgetsAtBoot: firmware that looks for an address does not have the one of an
// earlier boot any more. Another host may (finding C1).
func TestProxyForgetsAtBoot(t *testing.T) {
	s, l := newProxy()
	l.Hold(web1, "10.28.5.5")
	s.Reply(on(t, message(web1, discover)), noon)
	wantHeld(t, l, web1, "10.28.5.5")
	s.Reply(on(t, message(web1, discover, rom)), noon)
	wantHeld(t, l, web1, "")
}

// TestNAKIsNotFresh: no ARP probe holds back a NAK (a low finding).
func TestNAKIsNotFresh(t *testing.T) {
	s, _ := newServer()
	_, x := s.Reply(on(t, message(stray, request, serverID(serverAddr), requested("10.28.72.99"))), noon)
	if x.Reply != "NAK" || s.last.Fresh {
		t.Errorf("got %q, fresh %t", x.Reply, s.last.Fresh)
	}
}
