package dhcpd

import (
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
)

// ClientBurst is how many packets a client may send at once.
const ClientBurst = clientBurst

// MaxCommits is how many answers wait for the disk at most.
const MaxCommits = maxCommits

// Spoofed reports whether a packet from an address counts as spoofed.
func (s *Server) Spoofed(b []byte, from netip.Addr) bool {
	r := &request{from: from}
	r.Parse(b)
	return s.spoofed(r)
}

// Line pushes packets of these kinds, numbered from 1, into a queue and then
// takes all. It returns those dropped and those taken, and how many waited.
func Line(length int, kinds ...dhcpv4.MessageType) (dropped, taken []int, waited int) {
	var q queue
	q.open(length)
	for i, kind := range kinds {
		if r := q.push(&request{size: i + 1, Request: dhcp.Request{Type: kind}}); r != nil {
			dropped = append(dropped, r.size)
		}
	}
	waited = q.depth()
	q.close()
	for r := q.take(); r != nil; r = q.take() {
		taken = append(taken, r.size)
	}
	if q.depth() != 0 {
		panic("something is left")
	}
	return dropped, taken, waited
}

// Limiter returns the function that reports whether a packet may be answered.
func Limiter(now time.Time) func(pools.MAC, time.Time) bool { return newLimiter(now).allow }

// Frame wraps a message.
func Frame(srcMAC, dstMAC net.HardwareAddr, src, dst netip.AddrPort, message []byte) []byte {
	return frame(srcMAC, dstMAC, src, dst, message)
}

// ARPProbe is the probe of an address.
func ARPProbe(from net.HardwareAddr, a netip.Addr) []byte { return arpProbe(from, a) }

// ARPSender is the sender of an ARP frame.
func ARPSender(f []byte) (pools.MAC, netip.Addr, bool) { return arpSender(f) }
