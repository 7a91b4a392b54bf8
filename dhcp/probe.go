package dhcp

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mdlayher/packet"

	"drover/pools"
)

const (
	// probeWait is how long somebody who uses an address has to say so. On a
	// wire the answer takes less than a millisecond; a host that sleeps takes
	// longer.
	probeWait = 200 * time.Millisecond

	// maxProbes is how many probes are under way at a time. A room that
	// powers on at once is not kept waiting for more.
	maxProbes = 1024

	// maxConflicts is how many addresses in a row may turn out to be in use
	// before the client has to ask again.
	maxConflicts = 3
)

// probes keeps back the OFFERs of addresses that are new to their machine until
// the wire was asked by ARP whether somebody uses them whom drover does not
// know. That is for clients on the server's own wire; nobody else hears ARP.
// No worker waits meanwhile.
type probes struct {
	server *Server

	mu     sync.Mutex
	byMAC  map[pools.MAC]*probe
	byAddr map[netip.Addr]*probe
	ended  bool
	timers sync.WaitGroup
}

// probe is an OFFER that is kept back.
type probe struct {
	answer
	discover  []byte
	conflicts int
	timer     *time.Timer
}

func newProbes(s *Server) *probes {
	return &probes{server: s, byMAC: map[pools.MAC]*probe{}, byAddr: map[netip.Addr]*probe{}}
}

// under tells whether an OFFER for the machine is kept back.
func (ps *probes) under(mac pools.MAC) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.byMAC[mac] != nil
}

// start keeps an OFFER back when it should be. It returns false when the answer
// is to be sent at once. Conflicts is how many addresses were in use before
// this one.
func (ps *probes) start(a answer, discover []byte, conflicts int) bool {
	if ps.server.arp == nil || !a.x.fresh || a.reply == nil || a.x.Giaddr.IsValid() {
		return false
	}
	f := arpProbe(ps.server.mac, a.x.Address)
	p := &probe{answer: a, discover: bytes.Clone(discover), conflicts: conflicts}
	if !ps.add(p) {
		return false
	}
	if _, err := ps.server.arp.WriteTo(f, &packet.Addr{HardwareAddr: everybody().mac}); err != nil {
		ps.server.log().Warn("dhcp: ARP probe", "address", a.x.Address, "error", err)
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
		defer ps.server.rescue(&p.x)
		if ps.remove(p) {
			ps.server.finish(&p.answer)
		}
	})
	return true
}

// remove takes a probe out. It returns false when it was already.
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

// hear listens to ARP until ctx ends and the socket is closed.
func (ps *probes) hear(ctx context.Context) {
	b := make([]byte, 128)
	for ctx.Err() == nil {
		n, _, err := ps.server.arp.ReadFrom(b)
		if err != nil {
			ps.server.pause(ctx, err)
			continue
		}
		if mac, a, ok := arpSender(b[:n]); ok {
			ps.heard(mac, a)
		}
	}
}

// heard ends the probe of an address that mac says it has. The machine itself
// may use it: it has rebooted, and another server gave it the address before.
func (ps *probes) heard(mac pools.MAC, a netip.Addr) {
	ps.mu.Lock()
	p := ps.byAddr[a]
	ps.mu.Unlock()
	if p != nil && p.x.MAC != mac && ps.remove(p) {
		ps.conflict(p, mac)
	}
}

// conflict keeps the address of p from everybody, since by uses it, and answers
// its DISCOVER with another one.
func (ps *probes) conflict(p *probe, by pools.MAC) {
	s := ps.server
	defer s.rescue(&p.x)
	s.log().Warn("dhcp: an address of a range is used by a stranger; it is kept from everybody for a while",
		"address", p.x.Address, "by", by, "pool", p.x.Plan.Pool)
	s.Leases.Decline(p.x.MAC, p.x.Address, "in use by "+by.String(), s.now())
	if p.conflicts+1 == maxConflicts {
		p.x.Decision, p.x.Reply, p.x.Err = NoAddress, "", fmt.Errorf("%d addresses in a row are used by strangers", maxConflicts)
		s.done(&p.x)
		return
	}
	var a answer
	a.reply, a.x = s.handle(p.discover, s.now())
	a.x.Time = p.x.Time
	if !ps.start(a, p.discover, p.conflicts+1) {
		s.finish(&a)
	}
}

// stop ends all probes. Their OFFERs are not sent: nobody would hear what they
// are answered with.
func (ps *probes) stop() {
	ps.mu.Lock()
	ps.ended = true
	left := slices.Collect(maps.Values(ps.byMAC))
	ps.mu.Unlock()
	for _, p := range left {
		if ps.remove(p) {
			p.x.Decision, p.x.Reply = Waiting, ""
			ps.server.done(&p.x)
		}
	}
	ps.timers.Wait()
}
