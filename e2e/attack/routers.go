package attack

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv6"

	"drover/e2e/netns"
	"drover/pools"
)

// Routers floods the boot network with valid router solicitations and advertisements of
// made-up hosts.
func Routers(ctx context.Context, n netns.Namespace, rate int) (int, error) {
	w, err := NewWire(n)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	return pace(ctx, rate, func(i int) error {
		frame, err := routerDiscovery(randomMAC(), i%2 == 0)
		if err != nil {
			return err
		}
		return w.sendFrame(frame)
	})
}

// routerDiscovery returns the frame of a solicitation, or of an advertisement of a default
// router.
func routerDiscovery(from pools.MAC, solicitation bool) ([]byte, error) {
	group, typ, body := byte(1), ipv6.ICMPTypeRouterAdvertisement, []byte{64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0}
	if solicitation {
		group, typ, body = 2, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4)
	}
	src := netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 10: from[0], 11: from[1], 12: from[2], 13: from[3], 14: from[4], 15: from[5]}).AsSlice()
	dst := netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 15: group}).AsSlice()
	message, err := (&icmp.Message{Type: typ, Body: &icmp.RawBody{Data: body}}).Marshal(icmp.IPv6PseudoHeader(net.IP(src), net.IP(dst)))
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.AppendUint16(nil, uint16(len(message)))
	head := slices.Concat([]byte{0x33, 0x33, 0, 0, 0, group}, from[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0}, size, []byte{58, 255})
	return slices.Concat(head, src, dst, message), nil
}
