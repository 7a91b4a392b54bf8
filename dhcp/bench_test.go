package dhcp_test

import (
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
)

// BenchmarkReply is the work for one packet without its system calls: parse,
// resolve, reply, marshal, frame.
func BenchmarkReply(b *testing.B) {
	discovers := firstDiscovers()
	for _, bb := range []struct {
		name   string
		packet *dhcpv4.DHCPv4
	}{
		{"discover", discovers["ovmf-pxe"]},
		{"request", message(web1, request, serverID(serverAddr), requested("10.28.36.1"))},
		{"not ours", message(foreign, discover)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s, _ := newServer()
			packet := bb.packet.ToBytes()
			buf := make([]byte, 0, 4096)
			src := netip.AddrPortFrom(serverAddr, 67)
			b.ReportAllocs()
			for b.Loop() {
				buf = append(buf[:0], packet...)
				r, _ := s.Handle(buf, noon)
				if r == nil {
					continue
				}
				to, hw := dhcp.DestinationOf(r)
				dhcp.Frame(hw, hw, src, to, r.ToBytes())
			}
		})
	}
}
