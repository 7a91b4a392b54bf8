package dhcpd

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"drover/dhcp"
	"drover/dhcp/neighbor"
	"drover/pools"
)

const (
	// probeWait is how long a host that uses an address has to answer. On a
	// wire the answer takes less than a millisecond; a host that sleeps takes
	// longer.
	probeWait = 200 * time.Millisecond

	// maxProbes is how many probes are under way at a time. When a room powers
	// on, the other machines get their OFFERs without a probe.
	maxProbes = 1024

	// maxConflicts is how many addresses in a row may turn out to be in use
	// before the client has to ask again.
	maxConflicts = 3
)

// probes keeps back the OFFERs of addresses that are new to their machine until
// an ARP probe has found no unknown machine at them. That is for clients on the
// server's own wire; ARP does not reach others. No worker waits meanwhile.
type probes struct {
	server *Server

	mu        sync.Mutex
	byMAC     map[pools.MAC]*probe
	byAddr    map[netip.Addr]*probe
	answering map[pools.MAC]bool // by a worker now
	ended     bool
	timers    sync.WaitGroup
}

// probe is an OFFER that is kept back.
type probe struct {
	pending
	discover  *dhcp.Request
	conflicts int // how many addresses were in use before this one
	timer     *time.Timer
}

func newProbes(s *Server) *probes {
	return &probes{server: s, byMAC: map[pools.MAC]*probe{}, byAddr: map[netip.Addr]*probe{}, answering: map[pools.MAC]bool{}}
}

// begin reports whether a DISCOVER may be answered: no OFFER for its machine is kept
// back, and no other worker answers a DISCOVER of the machine at this moment, whose
// OFFER may be kept back. Call end after the answer.
func (ps *probes) begin(r *request) bool {
	if !ps.server.Probe {
		return true
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byMAC[r.MAC] != nil || ps.answering[r.MAC] {
		return false
	}
	if !r.Giaddr.IsValid() { // copies of several relays are all answered
		ps.answering[r.MAC] = true
	}
	return true
}

// end ends the answer that begin allowed.
func (ps *probes) end(r *request) {
	if !ps.server.Probe || r.Giaddr.IsValid() {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.answering, r.MAC)
}

// wants reports whether an OFFER of a fresh address is to be kept back.
func (ps *probes) wants(offer *pending) bool {
	return ps.server.Probe && !offer.x.Giaddr.IsValid()
}

// start keeps an OFFER of a fresh address back. It returns false when the OFFER
// must be sent at once.
func (ps *probes) start(offer pending, discover *dhcp.Request, conflicts int) bool {
	p := &probe{pending: offer, discover: discover, conflicts: conflicts}
	if !ps.add(p) {
		return false
	}
	if err := ps.server.nearby.Probe(offer.x.Address); err != nil {
		ps.server.log().Warn("dhcp: ARP probe failed", "address", offer.x.Address, "error", err)
		return !ps.remove(p)
	}
	return true
}

func (ps *probes) add(p *probe) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.ended || len(ps.byMAC) >= maxProbes || ps.byMAC[p.x.MAC] != nil || ps.byAddr[p.x.Address] != nil {
		return false
	}
	ps.byMAC[p.x.MAC], ps.byAddr[p.x.Address] = p, p
	ps.timers.Add(1)
	p.timer = time.AfterFunc(probeWait, func() {
		defer ps.timers.Done()
		defer ps.server.exchanges.Rescue(&p.x)
		if ps.remove(p) {
			ps.server.finish(&p.pending)
		}
	})
	return true
}

// remove ends a probe. It returns false when the probe had ended before.
func (ps *probes) remove(p *probe) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byMAC[p.x.MAC] != p {
		return false
	}
	delete(ps.byMAC, p.x.MAC)
	delete(ps.byAddr, p.x.Address)
	if p.timer.Stop() {
		ps.timers.Done()
	}
	return true
}

// hear hears hosts on the wire until ctx ends.
func (v *service) hear(ctx context.Context) {
	v.server.nearby.Hear(ctx, func(h neighbor.Host) {
		v.probes.claimed(h.MAC, h.Addr)
		v.neighbors.Seen(h)
	}, v.server.readError)
}

// claimed ends the probe of an address that mac claims to have. The machine
// itself may use it: it has rebooted, and another server gave it the address
// before.
func (ps *probes) claimed(mac pools.MAC, a netip.Addr) {
	ps.mu.Lock()
	p := ps.byAddr[a]
	ps.mu.Unlock()
	if p != nil && p.x.MAC != mac && ps.remove(p) {
		ps.conflict(p, mac)
	}
}

// conflict quarantines the address of p, since the machine by uses it, and
// answers the DISCOVER with another one.
func (ps *probes) conflict(p *probe, by pools.MAC) {
	s := ps.server
	defer s.exchanges.Rescue(&p.x)
	if s.Leases.Decline(p.x.Plan, p.x.Address, "in use by "+by.String(), s.now()) {
		s.log().Warn("dhcp: an address of a range is used by an unknown machine; no machine gets it for a while",
			"address", p.x.Address, "by", by, "pool", p.x.Plan.Pool)
	}
	if p.conflicts+1 == maxConflicts {
		p.x.Decision, p.x.Reply, p.x.Err = dhcp.NoAddress, "", fmt.Errorf("%d addresses in a row are used by unknown machines", maxConflicts)
		s.exchanges.Done(&p.x)
		return
	}
	var offer pending
	offer.message, offer.x = s.Reply(p.discover, s.now())
	offer.x.Time = p.x.Time
	if offer.message == nil || !offer.message.Fresh || !ps.start(offer, p.discover, p.conflicts+1) {
		s.finish(&offer)
	}
}

// stop ends all probes. Their OFFERs are not sent: the server could not read the
// REQUESTs that answer them.
func (ps *probes) stop() {
	ps.mu.Lock()
	ps.ended = true
	left := slices.Collect(maps.Values(ps.byMAC))
	ps.mu.Unlock()
	for _, p := range left {
		if ps.remove(p) {
			p.x.Decision, p.x.Reply = dhcp.Waiting, ""
			ps.server.exchanges.Done(&p.x)
		}
	}
	ps.timers.Wait()
}
