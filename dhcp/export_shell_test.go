package dhcp

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

// ClientBurst is how many packets a client may send at once.
const ClientBurst = clientBurst

// Look is the glance at a packet.
func Look(b []byte) (pools.MAC, dhcpv4.MessageType) {
	g := look(b)
	return g.mac, g.kind
}

// Forged tells what is said of a packet that came from an address.
func (s *Server) Forged(b []byte, from netip.Addr) bool {
	return s.forged(&request{from: from, glance: look(b)})
}

// Line pushes packets of these kinds, numbered from 1, into a queue and then
// takes all. It returns those dropped and those taken, and how many waited.
func Line(length int, kinds ...dhcpv4.MessageType) (dropped, taken []int, waited int64) {
	var depth atomic.Int64
	q := newQueue(length, &depth)
	for i, kind := range kinds {
		if r := q.push(&request{n: i + 1, glance: glance{kind: kind}}); r != nil {
			dropped = append(dropped, r.n)
		}
	}
	waited = depth.Load()
	for r := q.take(); r != nil; r = q.take() {
		taken = append(taken, r.n)
	}
	if !q.empty() || depth.Load() != 0 {
		panic("something is left")
	}
	return dropped, taken, waited
}

// Limiter returns what tells whether a packet is to be answered.
func Limiter(now time.Time) func(pools.MAC, time.Time) bool { return newLimiter(now).allow }

func ARPProbe(from net.HardwareAddr, a netip.Addr) []byte { return arpProbe(from, a) }

func ARPSender(f []byte) (pools.MAC, netip.Addr, bool) { return arpSender(f) }
