package dhcp6_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/dhcp/dhcp6"
	"drover/pools"
)

var relayAddr = netip.MustParseAddr("fd00:28::fe")

// forward puts the message of a relay agent around another message.
func forward(d dhcpv6.DHCPv6, link string, peer netip.Addr, opts ...dhcpv6.Option) *dhcpv6.RelayMessage {
	r := &dhcpv6.RelayMessage{MessageType: dhcpv6.MessageTypeRelayForward, LinkAddr: net.ParseIP(link), PeerAddr: peer.AsSlice()}
	if inner, ok := d.(*dhcpv6.RelayMessage); ok {
		r.HopCount = inner.HopCount + 1
	}
	for _, o := range opts {
		r.AddOption(o)
	}
	r.AddOption(dhcpv6.OptRelayMessage(d))
	return r
}

// relayed sends a packet of a relay agent, and returns the answer.
func (w *world) relayed(packet []byte, port uint16) (*dhcp6.Message, dhcp.Exchange) {
	var r dhcp6.Request
	r.Parse(packet, dhcp6.Sender{MAC: pools.MAC{2, 1}, Addr: relayAddr, Port: port, Unicast: true})
	return w.server.Reply(&r, own, noon)
}

// TestRelay: options 18 and 37 (RFC 8415, 4649), 79 (RFC 6939), 135 (RFC 8357), two relay
// agents, one of them in a switch (RFC 6221).
func TestRelay(t *testing.T) {
	random := addr("fe80::1234:5678:9abc:def0")
	lla := func(m pools.MAC) dhcpv6.Option { return dhcpv6.OptClientLinkLayerAddress(iana.HWTypeEthernet, m[:]) }
	port := func(id string) dhcpv6.Option { return dhcpv6.OptInterfaceID([]byte(id)) }
	solicit := func(m pools.MAC) *dhcpv6.Message { return message(dhcpv6.MessageTypeSolicit, m, duidUUID(1), ia(1)) }
	tests := []struct {
		name string
		msg  *dhcpv6.RelayMessage
		want string // node; empty: silence
		addr string
	}{
		{"MAC in option 79", forward(solicit(m3), "fd00:29::1", random, lla(m3), port("eth1")), "m3", "fd00:29::10"},
		{"MAC in the peer address", forward(solicit(m3), "fd00:29::1", linkLocal(m3)), "m3", "fd00:29::10"},
		{"MAC in the DUID", forward(message(dhcpv6.MessageTypeSolicit, m3, ia(1)), "fd00:29::1", random), "m3", "fd00:29::10"},
		{"option 79 counts more than the peer address", forward(solicit(m3), "fd00:29::1", linkLocal(stray), lla(m3)), "m3", "fd00:29::10"},
		{"option 18", forward(solicit(stray), "fd00:29::1", random, port("eth7")), "m4", "fd00:29::11"},
		{"a switch without link address", forward(forward(solicit(m3), "::", linkLocal(m3), port("eth1")), "fd00:29::1", addr("fe80::1")), "m3", "fd00:29::10"},
		{"two routers: the link of the nearest", forward(forward(solicit(m3), "fd00:29::1", linkLocal(m3)), "fd00:28::1", addr("fd00:29::1")), "m3", "fd00:29::10"},
		{"a DUID alone", forward(solicit(stray), "fd00:28::1", random), "?", "fd00:28::100"},
		{"a node of another network", forward(solicit(m3), "fd00:28::1", linkLocal(m3)), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			m, x := w.relayed(tt.msg.ToBytes(), 547)
			if tt.want == "" {
				if m != nil {
					t.Errorf("got an answer: %+v", x)
				}
				return
			}
			if m == nil {
				t.Fatalf("got silence: %+v", x)
			}
			if tt.want != "?" && x.Plan.Node != tt.want || x.Giaddr != relayAddr || m.Port != 547 {
				t.Errorf("got node %s by %s to port %d", x.Plan.Node, x.Giaddr, m.Port)
			}
			back, err := dhcpv6.FromBytes(m.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			inner := sameRelays(t, tt.msg, back)
			if a, _, _ := given(t, inner); a != addr(tt.addr) {
				t.Errorf("got %s, want %s", a, tt.addr)
			}
		})
	}
}

// sameRelays checks that an answer goes back through the relay agents of a request, with
// their interface identifiers, and returns the message for the client.
func sameRelays(t *testing.T, request *dhcpv6.RelayMessage, back dhcpv6.DHCPv6) *dhcpv6.Message {
	t.Helper()
	for {
		r, ok := back.(*dhcpv6.RelayMessage)
		if !ok {
			t.Fatalf("got %s for a relay agent", back.Type())
		}
		if r.MessageType != dhcpv6.MessageTypeRelayReply || r.HopCount != request.HopCount ||
			!r.LinkAddr.Equal(request.LinkAddr) || !r.PeerAddr.Equal(request.PeerAddr) ||
			string(r.Options.InterfaceID()) != string(request.Options.InterfaceID()) {
			t.Errorf("got %s for %s", r, request)
		}
		if back = r.Options.RelayMessage(); back == nil {
			t.Fatal("a relay agent gets no message for the client")
		}
		next, ok := request.Options.RelayMessage().(*dhcpv6.RelayMessage)
		if !ok {
			return back.(*dhcpv6.Message)
		}
		request = next
	}
}

// TestRelayPort: the answer goes to the port of a relay agent that says so (RFC 8357).
func TestRelayPort(t *testing.T) {
	w := newWorld(t)
	solicit := message(dhcpv6.MessageTypeSolicit, m3, ia(1))
	for _, tt := range []struct {
		opts []dhcpv6.Option
		want uint16
	}{{nil, 547}, {[]dhcpv6.Option{dhcpv6.OptRelayPort(0)}, 4242}} {
		m, x := w.relayed(forward(solicit, "fd00:29::1", linkLocal(m3), tt.opts...).ToBytes(), 4242)
		if m == nil || m.Port != tt.want {
			t.Errorf("got %+v, %+v, want port %d", m, x, tt.want)
		}
	}
}

// TestNested: at most eight relay agents (RFC 8415, section 7.6). A DUID keeps its lease.
func TestNested(t *testing.T) {
	w := newWorld(t)
	var d dhcpv6.DHCPv6 = message(dhcpv6.MessageTypeSolicit, m3, ia(1))
	for n := 1; n <= 20; n++ {
		d = forward(d, "fd00:29::1", linkLocal(m3))
		m, x := w.relayed(d.ToBytes(), 547)
		if (m != nil) != (n <= 8) || n > 8 && x.Decision != dhcp.Malformed {
			t.Errorf("%d relay agents: got %v, %+v", n, m, x)
		}
	}
	request := message(dhcpv6.MessageTypeRequest, stray, duidUUID(5), toUs, ia(1))
	_, first := w.relayed(forward(request, "fd00:28::1", addr("fe80::1234")).ToBytes(), 547)
	_, again := w.relayed(forward(request, "fd00:28::1", addr("fe80::5678")).ToBytes(), 547)
	if !first.Address.IsValid() || first.Address != again.Address || first.MAC != again.MAC || first.MAC[0]&3 != 2 {
		t.Errorf("got %s for %s, then %s for %s", first.Address, first.MAC, again.Address, again.MAC)
	}
}

// switches is the listed link address of a relay agent whose network has others in switches.
var switches = netip.MustParseAddr("fd00:28::51")

// networks are the networks and machines of the tests of senders.
type networks struct{}

func (networks) Owns(a netip.Addr, m pools.MAC) (owned, own bool) {
	return a == addr("fd00:28::10"), a == addr("fd00:28::10") && m == m1
}
func (networks) Declares(m pools.MAC) bool { return m == m1 }

func (networks) Leased(m pools.MAC) []netip.Addr {
	if m == m3 {
		return []netip.Addr{addr("fd00:28::100")}
	}
	return nil
}
func (networks) InSubnet(a netip.Addr) bool      { return netip.MustParsePrefix("fd00:28::/64").Contains(a) }
func (networks) InRange(a netip.Addr) bool       { return a == addr("fd00:28::100") }
func (networks) ListsRelay(a netip.Addr) bool    { return a == addr("2001:db8::1") || a == switches }
func (networks) OneNetwork(_, _ netip.Addr) bool { return false }

// TestSenders: who may speak for a machine.
func TestSenders(t *testing.T) {
	s := dhcp6.Senders{Machines: networks{}, Networks: networks{}}
	client := message(dhcpv6.MessageTypeSolicit, m1, ia(1))
	firmware := message(dhcpv6.MessageTypeSolicit, m1, ia(1), pxe(7, "PXEClient:Arch:00007:UNDI:003000"))
	inform := message(dhcpv6.MessageTypeInformationRequest, m1, ipxe)
	by := func(link string) dhcpv6.DHCPv6 { return forward(client, link, linkLocal(m3)) }
	router := pools.MAC{2, 9}
	tests := []struct {
		name string
		from dhcp6.Sender
		msg  dhcpv6.DHCPv6
		want dhcp.Decision
	}{
		{"a machine", dhcp6.Sender{MAC: m1, Addr: linkLocal(m1)}, client, ""},
		{"a random link-local address", dhcp6.Sender{MAC: m1, Addr: addr("fe80::77")}, client, ""},
		{"in the name of another machine", dhcp6.Sender{MAC: stray, Addr: linkLocal(m1)}, client, dhcp.Spoofed},
		{"routed, as from a pod", dhcp6.Sender{MAC: m1, Addr: addr("fd00:28::10")}, client, dhcp.Spoofed},
		{"no address", dhcp6.Sender{MAC: m1, Addr: netip.IPv6Unspecified()}, client, dhcp.Spoofed},
		{"firmware", dhcp6.Sender{MAC: m1, Addr: linkLocal(m1), Port: 546}, firmware, ""},
		{"a user of the node, as firmware", dhcp6.Sender{MAC: m1, Addr: linkLocal(m1), Port: 40000}, firmware, dhcp.Spoofed},
		{"iPXE without an address", dhcp6.Sender{MAC: m1, Addr: linkLocal(m1), Port: 546}, inform, ""},
		{"a user of the node, as iPXE", dhcp6.Sender{MAC: m1, Addr: linkLocal(m1), Port: 40000}, inform, dhcp.Spoofed},
		{"a system from another port", dhcp6.Sender{MAC: m1, Addr: linkLocal(m1), Port: 40000}, client, ""},
		{"a virtual router", dhcp6.Sender{MAC: pools.MAC{0, 0, 0x5e, 0, 2, 7}, Addr: addr("fe80::77")}, message(dhcpv6.MessageTypeSolicit, pools.MAC{0, 0, 0x5e, 0, 2, 7}, ia(1)), dhcp.Spoofed},
		{"an IPv4 address", dhcp6.Sender{MAC: m1, Addr: addr("::ffff:169.254.0.1"), Port: 546}, client, dhcp.Spoofed},
		{"a relay agent", dhcp6.Sender{MAC: router, Addr: relayAddr, Port: 547}, by("fd00:28::1"), ""},
		{"a listed one, from another port", dhcp6.Sender{MAC: router, Addr: addr("2001:db8::1"), Port: 4242}, by("fd00:28::1"), ""},
		{"an unknown one", dhcp6.Sender{MAC: router, Addr: addr("2001:db8::2"), Port: 547}, by("fd00:28::1"), dhcp.Spoofed},
		{"from another port", dhcp6.Sender{MAC: router, Addr: relayAddr, Port: 4242}, by("fd00:28::1"), dhcp.Spoofed},
		{"for an unknown network", dhcp6.Sender{MAC: router, Addr: relayAddr, Port: 547}, by("fd00:99::1"), dhcp.Spoofed},
		{"from a node", dhcp6.Sender{MAC: m1, Addr: addr("fd00:28::10"), Port: 547}, by("fd00:28::1"), dhcp.Spoofed},
		{"from an address of a range", dhcp6.Sender{MAC: router, Addr: addr("fd00:28::100"), Port: 547}, by("fd00:28::1"), dhcp.Spoofed},
		{"forwarded by a node", dhcp6.Sender{MAC: m1, Addr: relayAddr, Port: 547}, by("fd00:28::1"), dhcp.Spoofed},
		{"broken", dhcp6.Sender{MAC: m1, Addr: linkLocal(m1)}, &dhcpv6.Message{Options: dhcpv6.MessageOptions{Options: dhcpv6.Options{
			&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionClientID, OptionData: []byte{1}}}}}, dhcp.Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r dhcp6.Request
			r.Parse(tt.msg.ToBytes(), tt.from)
			if v := s.Judge(&r); v.Drop != tt.want {
				t.Errorf("got %q (%s), want %q", v.Drop, v.Why, tt.want)
			}
		})
	}
}

// TestConfirmedSenders: a lease, which anyone can take in the name of another, takes no right from a
// relay agent or a router that does not answer for the leased address.
func TestConfirmedSenders(t *testing.T) {
	s := dhcp6.Senders{Machines: networks{}, Networks: networks{}, Wire: []netip.Prefix{netip.MustParsePrefix("fd00:28::/96")}}
	client := message(dhcpv6.MessageTypeSolicit, m1, ia(1))
	by := func(a string, m pools.MAC) dhcp6.Sender { return dhcp6.Sender{MAC: m, Addr: addr(a), Port: 547} }
	router, vrrp := pools.MAC{2, 9}, pools.MAC{0, 0, 0x5e, 0, 2, 1}
	const far, near = "fd00:28::1:0:0:1", "fd00:28::fe" // behind a router, and on the wire
	for _, tt := range []struct {
		name    string
		from    dhcp6.Sender
		relayed bool
		want    string
	}{
		{"a router", by(far, router), true, "counts"},
		{"a router with a lease in its name", by(far, m3), true, "counts unless [fd00:28::100] at " + m3.String()},
		{"a relay agent on the wire", by(near, router), true, "counts with fd00:28::fe at " + router.String()},
		{"with a lease in its name", by(near, m3), true, "counts with fd00:28::fe at " + m3.String()},
		{"a listed relay agent with a lease in its name", by(switches.String(), m3), true, "counts"},
		{"a virtual router", by(far, vrrp), true, "counts"},
		{"a declared machine", by(near, m1), true, "spoofed"},
		{"one that was confirmed", dhcp6.Sender{MAC: m3, Addr: addr(near), Port: 547, Relay: true}, true, "counts"},
		{"a declared machine that was confirmed", dhcp6.Sender{MAC: m1, Addr: addr(near), Port: 547, Relay: true}, true, "spoofed"},
		{"a client with the address of a leased MAC", dhcp6.Sender{MAC: router, Addr: linkLocal(m3), Port: 546}, false, "counts unless [fd00:28::100] at " + m3.String()},
		{"a client with the address of a declared MAC", dhcp6.Sender{MAC: router, Addr: linkLocal(m1), Port: 546}, false, "spoofed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var packet dhcpv6.DHCPv6 = client
			if tt.relayed {
				packet = forward(client, "fd00:28::1", linkLocal(m1))
			}
			var r dhcp6.Request
			r.Parse(packet.ToBytes(), tt.from)
			v := s.Judge(&r)
			got := "counts"
			switch {
			case v.Drop != "":
				got = "spoofed"
			case v.Confirm.IsValid():
				got = fmt.Sprintf("counts with %s at %s", v.Confirm, v.By)
			case len(v.Unless) > 0:
				got = fmt.Sprintf("counts unless %s at %s", v.Unless, v.By)
			}
			if got != tt.want || (v.Confirm.IsValid() || len(v.Unless) > 0) && v.Why == "" {
				t.Errorf("got %q (%s), want %q", got, v.Why, tt.want)
			}
		})
	}
}

// TestRelayedSenders: who may speak for a machine behind a relay agent, which a client can ask
// by unicast and with messages that relay agents send.
func TestRelayedSenders(t *testing.T) {
	s := dhcp6.Senders{Machines: networks{}, Networks: networks{}}
	system := message(dhcpv6.MessageTypeSolicit, stray, ia(1))
	firmware := message(dhcpv6.MessageTypeSolicit, stray, ia(1), pxe(7, "PXEClient:Arch:00007:UNDI:003000"))
	global, listed, near := addr("fd00:28::77"), addr("2001:db8::1"), linkLocal(stray)
	forged := []dhcpv6.Option{dhcpv6.OptInterfaceID([]byte("eth7")), dhcpv6.OptClientLinkLayerAddress(iana.HWTypeEthernet, m3[:])}
	eth3 := dhcpv6.OptInterfaceID([]byte("eth3")) // where the relay agent received it
	tests := []struct {
		name string
		msg  *dhcpv6.RelayMessage
		want string // part of the reason; empty: it counts
	}{
		{"firmware", forward(firmware, "fd00:28::1", near), ""},
		{"a pod, as firmware", forward(firmware, "fd00:28::1", global), "not receive it from a link-local address"},
		{"a pod, as firmware, to a listed relay agent", forward(firmware, switches.String(), global), "not receive it from a link-local address"},
		{"no peer address", forward(firmware, "fd00:28::1", netip.IPv6Unspecified()), "not receive it from a link-local address"},
		{"a peer address of IPv4", forward(firmware, "fd00:28::1", addr("::ffff:169.254.0.1")), "not receive it from a link-local address"},
		{"a system by unicast", forward(system, "fd00:28::1", global), ""},

		{"a client that relays for itself", forward(forward(firmware, "::", near, forged...), "fd00:28::1", near, eth3), "RFC 6221"},
		{"with the link address of the agent", forward(forward(firmware, "fd00:28::1", near, forged...), "fd00:28::1", near, eth3), "RFC 6221"},
		{"with one that is listed", forward(forward(firmware, switches.String(), near, forged...), "fd00:28::1", near, eth3), "RFC 6221"},
		{"twice", forward(forward(forward(firmware, "::", near, forged...), switches.String(), near), "fd00:28::1", near, eth3), "RFC 6221"},
		{"from its own address", forward(forward(firmware, "fd00:28::1", near, forged...), "::", global, eth3), "behind another one"},
		{"in the name of a listed agent", forward(forward(firmware, "::", listed, forged...), "fd00:28::1", near, eth3), "RFC 6221"},
		{"a system that does so", forward(forward(system, "::", near, forged...), "fd00:28::1", near, eth3), "RFC 6221"},

		{"a switch before a listed link address", forward(forward(firmware, "::", near), switches.String(), addr("fe80::1")), ""},
		{"two switches", forward(forward(forward(firmware, "::", near), "::", near), switches.String(), addr("fe80::1")), ""},
		{"a pod behind the switch", forward(forward(firmware, "::", global), switches.String(), addr("fe80::1")), "not receive it from a link-local address"},
		{"a listed agent behind an agent", forward(forward(firmware, "fd00:28::1", near), "::", listed), ""},
		{"a client of the listed agent that relays for itself", forward(forward(forward(firmware, "::", near, forged...), "::", near), switches.String(), listed), "RFC 6221"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r dhcp6.Request
			r.Parse(tt.msg.ToBytes(), dhcp6.Sender{MAC: pools.MAC{2, 9}, Addr: relayAddr, Port: 547, Unicast: true})
			v := s.Judge(&r)
			if (v.Drop == dhcp.Spoofed) != (tt.want != "") || !strings.Contains(v.Why, tt.want) {
				t.Errorf("got %q (%s), want the reason %q", v.Drop, v.Why, tt.want)
			}
		})
	}
}

// TestPort: the limit of a port is that of the agent nearest to the server, which no client
// can choose.
func TestPort(t *testing.T) {
	solicit := message(dhcpv6.MessageTypeSolicit, m3, ia(1))
	inner := forward(solicit, "::", linkLocal(m3), dhcpv6.OptInterfaceID([]byte("inner")))
	for _, tt := range []struct {
		msg  dhcpv6.DHCPv6
		want string
	}{
		{solicit, ""}, {inner, "inner"},
		{forward(inner, "fd00:29::1", linkLocal(m3)), "inner"},
		{forward(inner, "fd00:29::1", linkLocal(m3), dhcpv6.OptInterfaceID([]byte("outer"))), "outer"},
	} {
		var r dhcp6.Request
		r.Parse(tt.msg.ToBytes(), dhcp6.Sender{})
		if got := string(r.Port()); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// FuzzReply: no packet ends the server, and each answer is a DHCPv6 message that is bounded.
func FuzzReply(f *testing.F) {
	solicit := message(dhcpv6.MessageTypeSolicit, m1, ia(1), pxe(7, "PXEClient:Arch:00007:UNDI:003000"), dhcpv6.WithRapidCommit)
	f.Add(solicit.ToBytes())
	f.Add(message(dhcpv6.MessageTypeRenew, m1, toUs, ia(1, "fd00:28::10", "fd00:28::11")).ToBytes())
	f.Add(message(dhcpv6.MessageTypeConfirm, m1, ia(1, "fd00:28::10")).ToBytes())
	f.Add(message(dhcpv6.MessageTypeDecline, m1, toUs, ia(1, "fd00:28::10")).ToBytes())
	f.Add(forward(forward(solicit, "::", linkLocal(m1), dhcpv6.OptInterfaceID([]byte("x"))), "fd00:29::1", relayAddr).ToBytes())
	f.Add([]byte("\t000\x00\x01\x00\n\x00\x0400000000\x00\x02\x00\n\x00\x03\x00\x01\x02\x00\x00\x00\x00\x01")) // a DECLINE with half a DUID of type 4
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, packet []byte) {
		for _, from := range []dhcp6.Sender{{MAC: m1, Addr: linkLocal(m1)}, {MAC: stray, Addr: linkLocal(stray), Unicast: true}} {
			var r dhcp6.Request
			r.Parse(packet, from)
			(&dhcp6.Senders{Machines: networks{}, Networks: networks{}}).Judge(&r)
			m, x := w.server.Reply(&r, own, noon)
			if m == nil {
				if x.Decision == "" {
					t.Error("silence without a decision")
				}
				continue
			}
			if len(m.Bytes) > 2*len(packet)+1024 {
				t.Errorf("got %d bytes for %d", len(m.Bytes), len(packet))
			}
			// The answer has the client's DUID and the identifiers of relay agents unchanged, and
			// the library parses the inside of a DUID, which the server does not.
			_, unread := dhcpv6.FromBytes(packet)
			if _, err := dhcpv6.FromBytes(m.Bytes); err != nil && unread == nil {
				t.Errorf("answer %x to %x: %v", m.Bytes, packet, err)
			}
		}
	})
}
