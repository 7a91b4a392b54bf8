package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// standIn is a [dhcp.Leases] in place of a server's. It has the leases that the server
// reported, and guesses addresses for the other machines. It leases nothing.
type standIn struct {
	farm    *resolve.Farm
	byMAC   map[pools.MAC]pools.LeaseInfo // of the family
	other   map[pools.MAC]pools.LeaseInfo // of the other family
	taken   map[netip.Addr]pools.MAC
	guessed bool // an address was offered that the machine has not leased yet
}

// newStandIn returns the leases of a family.
func newStandIn(farm *resolve.Farm, leases []pools.LeaseInfo, ipv6 bool, now time.Time) *standIn {
	s := &standIn{farm: farm, byMAC: map[pools.MAC]pools.LeaseInfo{}, other: map[pools.MAC]pools.LeaseInfo{}, taken: map[netip.Addr]pools.MAC{}}
	for _, l := range leases {
		of := s.byMAC
		if l.Address.Is6() != ipv6 {
			of = s.other
		}
		switch l.Lease.State(now) {
		case pools.LeaseActive, pools.LeaseExpired:
			of[l.MAC] = l
			s.taken[l.Address] = l.MAC
		case pools.LeaseDeclined:
			s.taken[l.Address] = pools.MAC{}
		}
	}
	return s
}

// liveFarm resolves like a running server: a node waits for its address while another
// machine leases it.
type liveFarm struct {
	farm   *resolve.Farm
	leases *standIn
	now    time.Time
	known  []pools.Unknown
}

// Resolve returns the plan of a machine.
func (f liveFarm) Resolve(q resolve.Query) *resolve.Plan {
	own := f.lease(&q)
	p := f.farm.ResolveLeased(q, own)
	if p == nil || !p.Address.IsValid() {
		return p
	}
	n, _ := f.farm.Node(p.Node)
	l := f.leases.byMAC[f.leases.taken[p.Address]].Lease
	if l.Address == p.Address && l.Active(f.now) && !l.Of(&n.Node) {
		p.Holder = &l
	}
	return p
}

// WhyNot returns the reason why Resolve returns no plan.
func (f liveFarm) WhyNot(q resolve.Query) string {
	l := f.lease(&q)
	return f.farm.WhyNotLeased(q, l)
}

// lease returns the active lease of the machine, without its address if it is of the other
// family, takes an iPXE for one that the firmware loaded, and notes what the machine reported.
func (f liveFarm) lease(q *resolve.Query) (l pools.Lease) {
	q.Chained = q.IPXE
	if i := slices.IndexFunc(f.known, func(u pools.Unknown) bool { return u.MAC == q.MAC }); i >= 0 {
		q.Hardware = f.known[i].Inventory
	}
	if l = f.leases.byMAC[q.MAC].Lease; l.Active(f.now) {
		return l
	}
	if l = f.leases.other[q.MAC].Lease; !l.Active(f.now) {
		return pools.Lease{}
	}
	l.Address = netip.Addr{}
	return l
}

// free reports whether an address of its range could be offered to the machine.
func (s *standIn) free(p *resolve.Plan, a netip.Addr) bool {
	owner, taken := s.taken[a]
	return p.Range.Contains(a) && !s.farm.Reserved(a) && (owner == p.MAC || !taken && !p.Serves(a))
}

// Offer returns the machine's last lease, else the address that it requests, else the
// first free one.
func (s *standIn) Offer(p *resolve.Plan, want netip.Addr, _ time.Time) (netip.Addr, bool, error) {
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

// Commit returns an error for an address of another machine, and does nothing else.
func (s *standIn) Commit(p *resolve.Plan, a netip.Addr, _ time.Time) (func() error, error) {
	if owner, ok := s.taken[a]; ok && owner != p.MAC {
		return nil, fmt.Errorf("%s has another machine: %w", a, pools.ErrRefused)
	}
	return func() error { return nil }, nil
}

// Holds returns the active lease that the server reported.
func (s *standIn) Holds(mac pools.MAC, now time.Time) (netip.Addr, bool) {
	l, ok := s.byMAC[mac]
	return l.Address, ok && l.Active(now)
}

// Leave does nothing.
func (*standIn) Leave(pools.MAC, netip.Addr, time.Time) {}

// Release does nothing.
func (*standIn) Release(*resolve.Plan, netip.Addr, time.Time) bool { return true }

// Decline does nothing.
func (*standIn) Decline(*resolve.Plan, netip.Addr, string, time.Time) bool { return true }
