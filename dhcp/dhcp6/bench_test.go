package dhcp6_test

import (
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp/dhcp6"
	"drover/pools"
)

// BenchmarkReply measures the work for one packet: parse, resolve, reply.
func BenchmarkReply(b *testing.B) {
	for _, bb := range []struct {
		name string
		of   pools.MAC
		msg  dhcpv6.MessageType
	}{
		{"solicit of a node", m1, dhcpv6.MessageTypeSolicit},
		{"request of a node", m1, dhcpv6.MessageTypeRequest},
		{"solicit of a stranger", stray, dhcpv6.MessageTypeSolicit},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w := newWorld(b)
			msg := message(bb.msg, bb.of, ia(1))
			if bb.msg == dhcpv6.MessageTypeRequest {
				toUs(msg)
			}
			packet := forward(msg, "fd00:28::1", linkLocal(bb.of), dhcpv6.OptClientLinkLayerAddress(iana.HWTypeEthernet, bb.of[:])).ToBytes()
			var r dhcp6.Request
			b.ReportAllocs()
			for b.Loop() {
				r.Parse(packet, dhcp6.Sender{MAC: pools.MAC{2, 1}, Addr: relayAddr, Port: dhcp6.ServerPort, Unicast: true})
				if m, x := w.server.Reply(&r, own, noon); m == nil {
					b.Fatalf("got silence: %+v", x)
				}
			}
		})
	}
}
