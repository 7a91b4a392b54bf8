package dhcpd

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/packet"

	"drover/dhcp"
	"drover/dhcp/packetio"
	"drover/pools"
)

// send sends a reply: from the boot port when its destination, to, is valid, else
// where the message itself says.
func (s *Server) send(m *dhcp.Message, to netip.AddrPort) error {
	conn, mac := s.boot, net.HardwareAddr(nil)
	if !to.IsValid() {
		conn = s.conn
		to, mac = m.Destination()
	}
	b := m.Append(nil)
	if mac == nil {
		if err := conn.write(b, to); err != nil {
			return fmt.Errorf("send to %s: %w", to, err)
		}
		return nil
	}
	f := frame(s.mac(), mac, netip.AddrPortFrom(s.Address, serverPort), to, b)
	if _, err := s.raw.WriteTo(f, &packet.Addr{HardwareAddr: mac}); err != nil {
		return fmt.Errorf("send frame to %s at %s: %w", to, mac, err)
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
	binary.BigEndian.PutUint16(ip[10:], ^packetio.Checksum(0, ip[:ipv4Header]))

	udp := ip[ipv4Header:]
	binary.BigEndian.PutUint16(udp[0:], src.Port())
	binary.BigEndian.PutUint16(udp[2:], dst.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	copy(udp[udpHeader:], message)
	// The pseudo header: both addresses, the protocol and the length.
	sum := packetio.Checksum(protocolUDP+uint32(len(udp)), ip[12:20])
	sum = ^packetio.Checksum(uint32(sum), udp)
	if sum == 0 {
		sum = 0xffff // zero would mean "no checksum" (RFC 768)
	}
	binary.BigEndian.PutUint16(udp[6:], sum)
	return f
}

// received is a UDP packet in the frame that it came in.
type received struct {
	mac      pools.MAC // source of the frame
	src, dst netip.AddrPort
	message  []byte
	intact   bool // its checksum is right, or zero: there is none (RFC 768)
}

// parseFrame finds the UDP packet in a frame. It returns false for another frame, for a
// fragment, and for a frame that is cut off.
func parseFrame(f []byte) (r received, ok bool) {
	if len(f) < ethernetHeader+ipv4Header || binary.BigEndian.Uint16(f[12:]) != etherTypeIPv4 {
		return r, false
	}
	ip := f[ethernetHeader:]
	header := int(ip[0]&0xf) * 4
	fragment := binary.BigEndian.Uint16(ip[6:])&0x3fff != 0
	if ip[0]>>4 != 4 || header < ipv4Header || fragment || ip[9] != protocolUDP || len(ip) < header+udpHeader {
		return r, false
	}
	udp := ip[header:]
	size := int(binary.BigEndian.Uint16(udp[4:]))
	if size < udpHeader || size > len(udp) {
		return r, false
	}
	copy(r.mac[:], f[6:])
	r.src = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[12:])), binary.BigEndian.Uint16(udp))
	r.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[16:])), binary.BigEndian.Uint16(udp[2:]))
	r.message = udp[udpHeader:size]
	sum := packetio.Checksum(protocolUDP+uint32(size), ip[12:20]) // of the pseudo header
	r.intact = binary.BigEndian.Uint16(udp[6:]) == 0 || packetio.Checksum(uint32(sum), udp[:size]) == 0xffff
	return r, true
}
