package explain

import (
	"fmt"
	"net/netip"
	"time"

	"drover/cmd/drover/cli"
	"drover/pools"
)

// standIn answers for the lease store of a server. It knows what the server
// told of its leases and guesses the rest; it leases nothing.
type standIn struct {
	farm    *pools.Farm
	byMAC   map[pools.MAC]cli.Lease
	taken   map[netip.Addr]pools.MAC
	guessed bool // an address was offered that the machine has not leased yet
}

func newStandIn(farm *pools.Farm, leases []cli.Lease, now time.Time) *standIn {
	s := &standIn{farm: farm, byMAC: map[pools.MAC]cli.Lease{}, taken: map[netip.Addr]pools.MAC{}}
	for _, l := range leases {
		switch l.Lease.State(now) {
		case pools.LeaseActive, pools.LeaseExpired:
			s.byMAC[l.MAC] = l
			s.taken[l.Address] = l.MAC
		case pools.LeaseDeclined:
			s.taken[l.Address] = pools.MAC{}
		}
	}
	return s
}

// free reports whether the machine could be offered an address of its range.
func (s *standIn) free(p *pools.Plan, a netip.Addr) bool {
	owner, taken := s.taken[a]
	return p.Range.Contains(a) && !s.farm.Reserved(a) && (!taken || owner == p.MAC)
}

// Offer is what the machine leased last, else the address that it asks for,
// else the first free one.
func (s *standIn) Offer(p *pools.Plan, want netip.Addr, _ time.Time) (netip.Addr, bool, error) {
	if l, ok := s.byMAC[p.MAC]; ok && s.free(p, l.Address) {
		return l.Address, false, nil
	}
	s.guessed = true
	if s.free(p, want) {
		return want, true, nil
	}
	for a := p.Range.First; p.Range.Contains(a); a = a.Next() {
		if s.free(p, a) {
			return a, true, nil
		}
	}
	return netip.Addr{}, false, fmt.Errorf("no address of %s is free: %w", p.Range, pools.ErrRefused)
}

// Commit refuses what another machine has, and else does nothing.
func (s *standIn) Commit(p *pools.Plan, a netip.Addr, _ time.Time) (func() error, error) {
	if owner, ok := s.taken[a]; ok && owner != p.MAC {
		return nil, fmt.Errorf("%s has another machine: %w", a, pools.ErrRefused)
	}
	return func() error { return nil }, nil
}

// Holds is what the server said.
func (s *standIn) Holds(mac pools.MAC, now time.Time) (netip.Addr, bool) {
	l, ok := s.byMAC[mac]
	return l.Address, ok && l.Active(now)
}

// What ends a lease does nothing.
func (*standIn) Leave(pools.MAC, netip.Addr, time.Time)   {}
func (*standIn) Release(pools.MAC, netip.Addr, time.Time) {}

func (*standIn) Decline(pools.MAC, netip.Addr, string, time.Time) bool { return true }
