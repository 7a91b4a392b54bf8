package dhcp_test

import (
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
)

// TestWhereAnswersGo checks the destinations of RFC 2131, section 4.1.
func TestWhereAnswersGo(t *testing.T) {
	s, _ := newServer()
	flag := dhcpv4.WithBroadcast(true)
	const everybody = "ff:ff:ff:ff:ff:ff"
	for _, tt := range []struct {
		name     string
		in       *dhcpv4.DHCPv4
		addr, hw string
	}{
		{"offer to the NIC", message(web1, discover), "10.28.36.1:68", web1.String()},
		{"offer to all, as asked", message(web1, discover, flag), "255.255.255.255:68", everybody},
		{"offer to the relay", message(web1, discover, giaddr("10.28.0.254"), flag), "10.28.0.254:67", ""},
		{"offer ignores an address not yet given", message(web1, discover, ciaddr("8.8.8.8")), "10.28.36.1:68", web1.String()},
		{"ack to the NIC", message(web1, request, requested("10.28.36.1")), "10.28.36.1:68", web1.String()},
		{"ack of a renewal", message(web1, request, ciaddr("10.28.36.1")), "10.28.36.1:68", ""},
		{"ack of a renewal, whatever the flag", message(web1, request, ciaddr("10.28.36.1"), flag), "10.28.36.1:68", ""},
		{"ack of a relayed renewal", message(web1, request, ciaddr("10.28.36.1"), giaddr("10.28.0.254")), "10.28.0.254:67", ""},
		{"ack of a choice ignores an address not yet given", message(web1, request, serverID(serverAddr), requested("10.28.36.1"), ciaddr("8.8.8.8")), "10.28.36.1:68", web1.String()},
		{"ack of an inform", message(web1, inform, ciaddr("10.28.5.5")), "10.28.5.5:68", ""},
		{"nak to all", message(web1, request, requested("10.28.36.9")), "255.255.255.255:68", everybody},
		{"nak of a renewal to all", message(stray, request, ciaddr("10.28.36.9")), "255.255.255.255:68", everybody},
		{"nak to the relay", message(web1, request, requested("10.28.36.9"), giaddr("10.28.0.254")), "10.28.0.254:67", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, x := s.Reply(on(t, tt.in), noon)
			if r == nil {
				t.Fatalf("got silence, %q: %v", x.Decision, x.Err)
			}
			addr, hw := s.destination()
			if addr != tt.addr || hw != tt.hw {
				t.Errorf("got %s at %q, want %s at %q", addr, hw, tt.addr, tt.hw)
			}
		})
	}
	t.Run("the relay must broadcast a nak", func(t *testing.T) {
		r, _ := s.Reply(on(t, message(web1, request, requested("10.28.36.9"), giaddr("10.28.0.254"))), noon)
		if !r.IsBroadcast() {
			t.Error("the flag is not set")
		}
	})
}

// TestROMsThatFillCiaddr (W5): the address in ciaddr is not the client's before the ACK,
// so that ARP for it gets no answer. The ACK goes in a frame.
func TestROMsThatFillCiaddr(t *testing.T) {
	const everybody = "ff:ff:ff:ff:ff:ff"
	for _, tt := range []struct {
		name   string
		client pools.MAC
		offer  string
		mods   []dhcpv4.Modifier
	}{
		{"with option 50", web1, "10.28.36.1", []dhcpv4.Modifier{serverID(serverAddr), requested("10.28.36.1")}},
		{"alone", web1, "10.28.36.1", []dhcpv4.Modifier{serverID(serverAddr)}},
		{"of a range, with option 50", stray, "10.28.72.10", []dhcpv4.Modifier{serverID(serverAddr), requested("10.28.72.10")}},
		{"of a range, alone", stray, "10.28.72.10", []dhcpv4.Modifier{serverID(serverAddr)}},
		{"coming back", web1, "10.28.36.1", []dhcpv4.Modifier{requested("10.28.36.1")}},
		{"without a word of the server", web1, "10.28.36.1", nil},
	} {
		for _, from := range []string{"0.0.0.0", tt.offer} {
			for _, flag := range []bool{false, true} {
				if tt.mods == nil && from != "0.0.0.0" {
					continue // a renewal
				}
				s, _ := newServer()
				in := message(tt.client, request, append(tt.mods, rom, ciaddr(tt.offer), dhcpv4.WithBroadcast(flag))...)
				var req dhcp.Request
				req.Parse(in.ToBytes())
				if a := netip.MustParseAddr(from); !a.IsUnspecified() {
					req.From = a
				}
				m, x := s.Responder.Reply(&req, noon)
				if m == nil || x.Reply != "ACK" {
					t.Fatalf("%s, from %s: got %q, %q (%v)", tt.name, from, x.Reply, x.Decision, x.Err)
				}
				to, hw := m.Destination()
				wantTo, wantHW := tt.offer+":68", tt.client.String()
				if flag {
					wantTo, wantHW = "255.255.255.255:68", everybody
				}
				if to.String() != wantTo || hw.String() != wantHW {
					t.Errorf("%s, from %s, flag %t: goes to %s at %q, want %s at %q", tt.name, from, flag, to, hw, wantTo, wantHW)
				}
			}
		}
	}
	t.Run("through a relay agent", func(t *testing.T) {
		s, _ := newServer()
		s.Reply(on(t, message(web1, request, giaddr("10.28.0.254"), serverID(serverAddr), requested("10.28.36.1"), ciaddr("10.28.36.1"))), noon)
		if to, hw := s.destination(); to != "10.28.0.254:67" || hw != "" {
			t.Errorf("goes to %s at %q", to, hw)
		}
	})
}

func TestBroadcastAddress(t *testing.T) {
	for cidr, want := range map[string]string{
		"10.28.0.0/16": "10.28.255.255", "10.28.4.0/22": "10.28.7.255", "192.168.1.128/30": "192.168.1.131",
		"192.168.1.4/31": "invalid IP", "192.168.1.4/32": "invalid IP", "0.0.0.0/0": "255.255.255.255", "fd00::/64": "invalid IP",
	} {
		if got := dhcp.Broadcast(netip.MustParsePrefix(cidr)).String(); got != want {
			t.Errorf("%s: got %s, want %s", cidr, got, want)
		}
	}
}
