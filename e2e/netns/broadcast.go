package netns

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// Broadcast sends UDP from 0.0.0.0:68 to 255.255.255.255:67 on a device, as a DHCP client
// without an address does.
func (n Namespace) Broadcast(t testing.TB, device string, message []byte) {
	t.Helper()
	client, all := netip.MustParseAddrPort("0.0.0.0:68"), netip.MustParseAddrPort("255.255.255.255:67")
	packet := Datagram(client, all, 64, message)
	n.In(t, func() error {
		ifi, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		ethertype := binary.NativeEndian.Uint16([]byte{0x08, 0x00}) // IPv4, in network byte order
		to := &unix.SockaddrLinklayer{Protocol: ethertype, Ifindex: ifi.Index, Halen: 6, Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
		return unix.Sendto(fd, packet, 0, to)
	})
}
