package dhcp

import (
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

const BufferSize = bufferSize

func FirmwareOf(class string, data []byte) pools.Firmware {
	return firmware(class, archs(class, data))
}

func DestinationOf(r *dhcpv4.DHCPv4) (netip.AddrPort, net.HardwareAddr) {
	d := destinationOf(messageOf(r))
	return d.addr, d.mac
}

func Frame(srcMAC, dstMAC net.HardwareAddr, src, dst netip.AddrPort, message []byte) []byte {
	return frame(srcMAC, dstMAC, src, dst, message)
}

func (s *Server) Handle(b []byte, now time.Time) (*dhcpv4.DHCPv4, Exchange) {
	m, x := s.handle(b, now)
	return m.dhcpv4(), x
}

func Broadcast(p netip.Prefix) netip.Addr { return broadcast(p) }

// Tell handles a packet and tells of it as Serve does, but sends nothing.
func (s *Server) Tell(b []byte, now time.Time) {
	_, x := s.handle(b, now)
	s.done(&x)
}
