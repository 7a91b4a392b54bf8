package dhcp

import (
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

const BufferSize = bufferSize

func FirmwareOf(class string, archs []byte) pools.Firmware { return firmware(class, archs) }

func DestinationOf(r *dhcpv4.DHCPv4) (netip.AddrPort, net.HardwareAddr) {
	d := destinationOf(r)
	return d.addr, d.mac
}

func Frame(srcMAC, dstMAC net.HardwareAddr, src, dst netip.AddrPort, message []byte) []byte {
	return frame(srcMAC, dstMAC, src, dst, message)
}

func (s *Server) Handle(b []byte, now time.Time) (*dhcpv4.DHCPv4, Exchange) { return s.handle(b, now) }

func Broadcast(p netip.Prefix) netip.Addr { return broadcast(p) }

func Printable(s string) string { return printable(s) }

// Push queues the numbers from 1 to n with nobody taking them, and returns
// those dropped and those left.
func Push(size, n int) (dropped, left []int) {
	queue := make(chan request, size)
	for i := 1; i <= n; i++ {
		if r, full := push(queue, request{n: i}); full {
			dropped = append(dropped, r.n)
		}
	}
	close(queue)
	for r := range queue {
		left = append(left, r.n)
	}
	return dropped, left
}

// Tell handles a packet and tells of it as Serve does, but sends nothing.
func (s *Server) Tell(b []byte, now time.Time) {
	_, x := s.handle(b, now)
	s.done(&x, now)
}
