package ifaddr

import (
	"net"
	"net/netip"
	"time"
)

// HostInterval is how long a [Host] takes its addresses to be complete. A flood to other
// hosts then costs no more than one list a second.
const HostInterval = time.Second

// Host is the set of addresses that packets for a host go to. It finds addresses that come
// later, such as a virtual one of keepalived. It is for one goroutine.
type Host struct {
	List func() ([]net.Addr, error) // the addresses of all interfaces, such as [net.InterfaceAddrs]

	known map[netip.Addr]bool
	read  time.Time
}

// Add adds addresses that List need not have, such as multicast groups.
func (h *Host) Add(addrs ...netip.Addr) {
	if h.known == nil {
		h.known = map[netip.Addr]bool{}
	}
	for _, a := range addrs {
		h.known[a] = true
	}
}

// Has reports whether packets to an address are for the host. For an unknown one it calls
// List, unless it did so within HostInterval. A List that returns an error leaves the
// addresses as they are. An address that the host loses stays.
func (h *Host) Has(a netip.Addr, now time.Time) bool {
	if h.known[a] {
		return true
	}
	if now.Sub(h.read) > HostInterval {
		h.read = now
		all, _ := h.List()
		for _, p := range Prefixes(all) {
			h.Add(p.Addr())
		}
	}
	return h.known[a]
}
