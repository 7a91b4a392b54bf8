package dhcp_test

import (
	"bytes"
	"net"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/pools/resolve"
)

// TestWire: Append writes a reply as the library does.
func TestWire(t *testing.T) {
	plain := func(change func(*dhcpv4.DHCPv4)) *dhcpv4.DHCPv4 {
		r := &dhcpv4.DHCPv4{
			OpCode: dhcpv4.OpcodeBootReply, HWType: iana.HWTypeEthernet, ClientHWAddr: net.HardwareAddr(web1[:]),
			TransactionID: dhcpv4.TransactionID{1, 2, 3, 4}, Options: dhcpv4.Options{53: {2}, 54: {10, 28, 0, 2}},
		}
		change(r)
		return r
	}
	for name, r := range map[string]*dhcpv4.DHCPv4{
		"short": plain(func(*dhcpv4.DHCPv4) {}),
		"flags and addresses": plain(func(r *dhcpv4.DHCPv4) {
			r.SetBroadcast()
			r.ClientIPAddr, r.YourIPAddr = net.IP{10, 0, 0, 1}, net.IP{10, 0, 0, 2}
			r.ServerIPAddr, r.GatewayIPAddr = net.IP{10, 0, 0, 3}, net.IP{10, 0, 0, 4}
		}),
		"relay option last": plain(func(r *dhcpv4.DHCPv4) { r.Options[82], r.Options[121] = []byte("relay"), []byte("routes") }),
		"file and sname": plain(func(r *dhcpv4.DHCPv4) {
			r.BootFileName, r.ServerHostName = string(bytes.Repeat([]byte{'f'}, 127)), string(bytes.Repeat([]byte{'s'}, 63))
		}),
		"an option without a value": plain(func(r *dhcpv4.DHCPv4) { r.Options[61] = nil }),
		"one piece":                 plain(func(r *dhcpv4.DHCPv4) { r.Options[43] = make([]byte, 255) }),
		"two pieces":                plain(func(r *dhcpv4.DHCPv4) { r.Options[43] = make([]byte, 256) }),
		"three pieces":              plain(func(r *dhcpv4.DHCPv4) { r.Options[43] = make([]byte, 700) }),
		"every option": plain(func(r *dhcpv4.DHCPv4) {
			for code := 1; code < 255; code++ {
				r.Options[uint8(code)] = []byte{byte(code)}
			}
			delete(r.Options, 67) // see TestEndOfBootFile
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := dhcp.Wire(r), r.ToBytes(); !bytes.Equal(got, want) {
				t.Errorf("got\n%x\nwant\n%x", got, want)
			}
		})
	}
}

// TestPointToPoint: a network of two addresses has no network and no broadcast
// address (RFC 3021).
func TestPointToPoint(t *testing.T) {
	s, _ := newServer()
	s.Farm = farmFunc(func(p *resolve.Plan) {
		p.Subnet.CIDR, p.Subnet.Router, p.Address = netip.MustParsePrefix("10.28.0.0/31"), netip.Addr{}, netip.MustParseAddr("10.28.0.0")
	})
	for _, in := range []*dhcpv4.DHCPv4{message(web1, discover), message(web1, inform, ciaddr("10.28.0.0"))} {
		r, x := s.Reply(on(t, in), noon)
		if r == nil || r.Options[28] != nil || string(r.Options[1]) != "\xff\xff\xff\xfe" {
			t.Errorf("%s: got %q, %v", x.Type, x.Decision, r)
		}
	}
}
