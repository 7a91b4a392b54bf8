package server

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/bootprogram"
	"drover/pools"
)

// TestDeclinedRange: whoever declines every address of a range, another machine still gets one, and
// keeps it.
func TestDeclinedRange(t *testing.T) {
	const size = 11
	relay := netip.MustParseAddr("10.28.0.254")
	for _, tt := range []struct {
		name    string
		decline func(n int) bootprogram.Discover
	}{
		{"one machine", func(int) bootprogram.Discover { return bootprogram.Discover{MAC: pools.MAC{2, 1}} }},
		{"one machine by many names", func(n int) bootprogram.Discover {
			return bootprogram.Discover{MAC: pools.MAC{2, 1}, ClientID: fmt.Sprintf("\x00client%d", n)}
		}},
		{"invented machines", func(n int) bootprogram.Discover { return bootprogram.Discover{MAC: pools.MAC{2, 2, 0, 0, 0, byte(n)}} }},
		{"invented machines at one port", func(n int) bootprogram.Discover {
			return bootprogram.Discover{MAC: pools.MAC{2, 3, 0, 0, 0, byte(n)}, Relay: relay, CircuitID: "ge-0/0/1"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire(t, pools.DHCPFull, "  - {name: lobby, catchall: true, image: debian-12, range: 10.28.72.10-10.28.72.20, lease: 5m}\n")
			declined := 0
			for n := range 3 * size {
				d := tt.decline(n)
				offer, _ := w.send(d.Packet())
				if offer == nil {
					continue
				}
				p := d.Packet()
				p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeDecline))
				p.UpdateOption(dhcpv4.OptServerIdentifier(serverAddress.AsSlice()))
				p.UpdateOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr))
				if _, x := w.send(p); x.Decision == dhcp.Declined {
					declined++
				}
			}
			if declined < size {
				t.Fatalf("only %d addresses were declined", declined)
			}
			for n := range byte(3) {
				w.mac = pools.MAC{0x52, 0x54, 0, 0x77, 9, n}
				if pool := w.boot(bootprogram.Discover{Firmware: pools.BIOS}); pool != "lobby" {
					t.Fatalf("another machine gets no address")
				}
				w.stays("afterwards", "lobby")
			}
		})
	}
}
