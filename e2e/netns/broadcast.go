package netns

import (
	"encoding/binary"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// Broadcast sends UDP from port 68 of 0.0.0.0 to port 67 of all hosts, in a frame of a
// device, as a DHCP client does that has no address.
func (n Namespace) Broadcast(t testing.TB, device string, message []byte) {
	t.Helper()
	b := make([]byte, 28, 28+len(message))
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(28+len(message)))
	copy(b[16:], net.IPv4bcast.To4())
	binary.BigEndian.PutUint16(b[20:], 68)
	binary.BigEndian.PutUint16(b[22:], 67)
	binary.BigEndian.PutUint16(b[24:], uint16(8+len(message))) // and no checksum
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum>>16+sum&0xffff))
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
		return unix.Sendto(fd, append(b, message...), 0, to)
	})
}
