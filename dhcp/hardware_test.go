package dhcp_test

import (
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/pools"
)

// infiniBand makes a request one of an InfiniBand port, whose GUID is made of the MAC (RFC
// 4390): no hardware address, a client identifier, the broadcast flag.
func infiniBand(m pools.MAC) dhcpv4.Modifier {
	return func(d *dhcpv4.DHCPv4) {
		d.HWType, d.ClientHWAddr = iana.HWTypeInfiniband, nil
		d.SetBroadcast()
		d.Options[61] = []byte{0xff, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0xc9, 0, m[0], m[1], m[2], 3, 0, m[3], m[4], m[5]}
	}
}

// TestIEEE802: hardware type 6 is answered as Ethernet, and repeated.
func TestIEEE802(t *testing.T) {
	ieee802 := func(d *dhcpv4.DHCPv4) { d.HWType = iana.HWTypeIEEE802 }
	for _, tt := range []struct {
		name          string
		in            *dhcpv4.DHCPv4
		reply, answer string
	}{
		{"a node", message(web1, discover, ieee802), "OFFER", "10.28.36.1"},
		{"it chooses us", message(web1, request, ieee802, serverID(serverAddr), requested("10.28.36.1")), "ACK", "10.28.36.1"},
		{"it is refused another address", message(web1, request, ieee802, requested("10.28.36.9")), "NAK", "0.0.0.0"},
		{"unknown hardware", message(stray, discover, ieee802), "OFFER", "10.28.72.10"},
		{"a ROM behind a relay", message(web1, discover, ieee802, rom, giaddr("10.28.0.200")), "OFFER", "10.28.36.1"},
	} {
		s, _ := newServer()
		r, x := s.handle(tt.in.ToBytes(), noon)
		if x.Reply != tt.reply || r == nil || r.YourIPAddr.String() != tt.answer {
			t.Errorf("%s: got %v, %q (%v)", tt.name, r, x.Decision, x.Err)
			continue
		}
		if b := s.last.Append(nil); b[1] != 6 || b[2] != 6 || pools.MAC(b[28:34]) != pools.MAC(tt.in.ClientHWAddr) {
			t.Errorf("%s: got % x", tt.name, b[:44])
		}
	}
}

// TestInfiniBand (RFC 4390): a node is declared by the MAC that its card's GUID is made
// of, or by its client identifier.
func TestInfiniBand(t *testing.T) {
	noFlag := func(d *dhcpv4.DHCPv4) { d.SetUnicast() }
	const text61 = "\x00ib-1"
	for _, tt := range []struct {
		name          string
		in            *dhcpv4.DHCPv4
		reply, answer string
	}{
		{"a node looks for an address", message(web1, discover, infiniBand(web1)), "OFFER", "10.28.36.1"},
		{"it chooses us", message(web1, request, infiniBand(web1), serverID(serverAddr), requested("10.28.36.1")), "ACK", "10.28.36.1"},
		{"it forgets the flag", message(web1, discover, infiniBand(web1), noFlag), "OFFER", "10.28.36.1"},
		{"it comes back with another address", message(web1, request, infiniBand(web1), requested("10.28.36.9")), "NAK", "0.0.0.0"},
		{"unknown hardware", message(stray, discover, infiniBand(stray)), "OFFER", "10.28.72.10"},
		{"a ROM", message(web1, discover, infiniBand(web1), rom), "OFFER", "10.28.36.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newServer()
			r, x := s.handle(tt.in.ToBytes(), noon)
			if x.Reply != tt.reply || r == nil || r.YourIPAddr.String() != tt.answer {
				t.Fatalf("got %v, %q (%v)", r, x.Decision, x.Err)
			}
			b := s.last.Append(nil)
			if b[1] != 32 || b[2] != 0 || string(b[28:44]) != string(make([]byte, 16)) || string(r.Options[61]) != string(tt.in.Options[61]) {
				t.Errorf("got % x", b[:44])
			}
			if to, hw := s.destination(); to != "255.255.255.255:68" || hw != "ff:ff:ff:ff:ff:ff" || !r.IsBroadcast() {
				t.Errorf("goes to %s at %s", to, hw)
			}
		})
	}
	t.Run("declared by its client identifier", func(t *testing.T) {
		s, l := newServer()
		s.Farm = farmOf(t, `
subnets: [{cidr: 10.28.0.0/16}]
pools:
  - {name: ib, image: debian, nodes: [{name: ib1, match: {clientID: ib-1}, ip: 10.28.36.7}]}
`)
		play(t, s, []step{{"discover", message(web1, discover, infiniBand(web1), text(61, text61)), "OFFER", "10.28.36.7", dhcp.Offered}})
		_, x := s.handle(message(web1, request, infiniBand(web1), text(61, text61), requested("10.28.36.7")).ToBytes(), noon)
		if x.Decision != dhcp.Acknowledged {
			t.Errorf("got %q (%v)", x.Decision, x.Err)
		}
		wantHeld(t, l, x.MAC, "10.28.36.7")
	})
	for name, in := range map[string]*dhcpv4.DHCPv4{
		"no client identifier":    message(web1, discover, infiniBand(web1), func(d *dhcpv4.DHCPv4) { delete(d.Options, 61) }),
		"an address of 20 bytes":  message(web1, discover, infiniBand(web1), func(d *dhcpv4.DHCPv4) { d.ClientHWAddr = make([]byte, 16) }),
		"an empty one":            message(web1, discover, infiniBand(web1), option(61)),
		"BOOTP, which has no one": message(web1, discover, infiniBand(web1), func(d *dhcpv4.DHCPv4) { delete(d.Options, 61) }, noType),
	} {
		s, _ := newServer()
		if r, x := s.handle(in.ToBytes(), noon); r != nil || x.Decision != dhcp.Malformed {
			t.Errorf("%s: got %v, %q", name, r, x.Decision)
		}
	}
}

// TestInfiniBandMACs: ports have different MACs, and one port always the same.
func TestInfiniBandMACs(t *testing.T) {
	seen := map[pools.MAC]string{}
	for _, id := range []string{"\x00a", "\x00b", "\x00ibnode-1", "\x00ibnode-2", "\xff\x00\x00\x00\x00\x00\x02\x00\x00\x02\xc9\x00\x00\x02\xc9\x03\x00\xab\xcd\xef", "\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		var req dhcp.Request
		for range 2 {
			req.Parse(message(web1, discover, infiniBand(web1), text(61, id)).ToBytes())
			if other, ok := seen[req.MAC]; ok && other != id || req.MAC.IsZero() || req.MAC[0]&1 != 0 {
				t.Errorf("%q has %s, as %q", id, req.MAC, other)
			}
			seen[req.MAC] = id
		}
		if !req.Chaddr().IsZero() {
			t.Errorf("got chaddr %s", req.Chaddr())
		}
	}
	if seen[mac("00:02:c9:ab:cd:ef")] == "" {
		t.Errorf("got %v, want the MAC of the card", seen)
	}
}

// TestOneClientIdentifierTwoCards: by design a machine is known by its hardware address,
// because firmware, iPXE and operating system send different client identifiers, and
// cloned images send the same ones. RFC 2131, section 4.2, would give both cards one
// binding. The cards of a declared node share its address.
func TestOneClientIdentifierTwoCards(t *testing.T) {
	s, _ := newServer()
	same := option(61, 0, 'i', 'd')
	play(t, s, []step{
		{"unknown hardware", message(stray, discover, same), "OFFER", "10.28.72.10", dhcp.Offered},
		{"another card", message(mac("52:54:00:77:01:02"), discover, same), "OFFER", "10.28.72.11", dhcp.Offered},
		{"a node", message(web1, discover, same), "OFFER", "10.28.36.1", dhcp.Offered},
		{"its other card", message(web1b, discover, same), "OFFER", "10.28.36.1", dhcp.Offered},
	})
}
