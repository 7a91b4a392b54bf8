package dhcp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/mdlayher/packet"
)

const (
	serverPort = 67
	clientPort = 68
)

// destination is where a reply goes. Over UDP when mac is nil: the kernel
// finds the way to an address that answers ARP. As a frame when it is not.
type destination struct {
	addr netip.AddrPort
	mac  net.HardwareAddr
}

// destinationOf follows RFC 2131, section 4.1.
//
// What cannot go to an address in use goes as a frame that we write ourselves,
// broadcasts too: a client that has no address yet answers no ARP, and a frame
// carries our server identifier as its source and a finished UDP checksum,
// which packets of the local stack do not on virtual NICs (dhclient and old
// PXE stacks drop those).
func destinationOf(m *message) destination {
	switch {
	case m.giaddr.IsValid():
		return destination{addr: netip.AddrPortFrom(m.giaddr, serverPort)}
	case m.messageType() == dhcpv4.MessageTypeNak:
		return everybody()
	case m.ciaddr.IsValid():
		return destination{addr: netip.AddrPortFrom(m.ciaddr, clientPort)}
	case m.flags&broadcastFlag != 0 || !m.yiaddr.IsValid():
		return everybody()
	}
	return destination{addr: netip.AddrPortFrom(m.yiaddr, clientPort), mac: m.mac[:]}
}

func everybody() destination {
	return destination{
		addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), clientPort),
		mac:  net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
}

// send puts a reply on the wire.
func (s *Server) send(d destination, message []byte) error {
	if d.mac == nil {
		if err := s.conn.send(message, d.addr); err != nil {
			return fmt.Errorf("send to %s: %w", d.addr, err)
		}
		return nil
	}
	f := frame(s.mac, d.mac, netip.AddrPortFrom(s.Address, serverPort), d.addr, message)
	if _, err := s.raw.WriteTo(f, &packet.Addr{HardwareAddr: d.mac}); err != nil {
		return fmt.Errorf("send frame to %s at %s: %w", d.addr, d.mac, err)
	}
	return nil
}

const (
	ethernetHeader = 14
	ipv4Header     = 20
	udpHeader      = 8

	etherTypeIPv4 = 0x0800
	protocolUDP   = 17
)

// frame wraps a message into UDP, IPv4 and Ethernet.
func frame(srcMAC, dstMAC net.HardwareAddr, src, dst netip.AddrPort, message []byte) []byte {
	f := make([]byte, ethernetHeader+ipv4Header+udpHeader+len(message))
	copy(f[0:6], dstMAC)
	copy(f[6:12], srcMAC)
	binary.BigEndian.PutUint16(f[12:], etherTypeIPv4)

	ip := f[ethernetHeader:]
	ip[0] = 0x45 // version 4, header of five words
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	ip[8] = 64 // TTL
	ip[9] = protocolUDP
	from, to := src.Addr().As4(), dst.Addr().As4()
	copy(ip[12:16], from[:])
	copy(ip[16:20], to[:])
	binary.BigEndian.PutUint16(ip[10:], ^checksum(0, ip[:ipv4Header]))

	udp := ip[ipv4Header:]
	binary.BigEndian.PutUint16(udp[0:], src.Port())
	binary.BigEndian.PutUint16(udp[2:], dst.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	copy(udp[udpHeader:], message)
	// The pseudo header: both addresses, the protocol and the length.
	sum := checksum(protocolUDP+uint32(len(udp)), ip[12:20])
	sum = ^checksum(uint32(sum), udp)
	if sum == 0 {
		sum = 0xffff // zero would mean "no checksum" (RFC 768)
	}
	binary.BigEndian.PutUint16(udp[6:], sum)
	return f
}

// checksum adds b to a ones' complement sum (RFC 1071).
func checksum(sum uint32, b []byte) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
