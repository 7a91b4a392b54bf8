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
		return sendFrame(device, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0x0800, packet)
	})
}

// sendFrame sends a frame with a payload on a device.
func sendFrame(device string, to [6]byte, etherType uint16, payload []byte) error {
	ifi, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	link := &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16([]byte{byte(etherType >> 8), byte(etherType)}), Ifindex: ifi.Index, Halen: 6}
	copy(link.Addr[:], to[:])
	return unix.Sendto(fd, payload, 0, link)
}

// Mark broadcasts a frame with a text on a device. Its EtherType is one for experiments, so
// that nobody answers.
func (n Namespace) Mark(device, text string) error {
	return n.Do(func() error {
		return sendFrame(device, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0x88b5, []byte(text))
	})
}
