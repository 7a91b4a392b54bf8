package pools

import (
	"net/netip"
	"slices"
)

// Spare reports whether the config has no use for an address: it is no node's own and
// in no pool's range, and neither a router, a DNS server nor this server has it.
func (p *Plan) Spare(a netip.Addr) bool {
	f := p.farm
	if f == nil {
		return !p.Subnet.serves(a)
	}
	return !f.Reserved(a) && !f.IsLocal(a) && !f.InRange(a) &&
		!slices.ContainsFunc(f.Config.Subnets, func(s Subnet) bool { return s.serves(a) })
}

// IsServer reports whether an address is one of the server that made the plan, see
// [Farm.IsLocal].
func (p *Plan) IsServer(a netip.Addr) bool { return p.farm != nil && p.farm.IsLocal(a) }

// InRange reports whether a catch-all pool leases the address.
func (f *Farm) InRange(a netip.Addr) bool {
	return slices.ContainsFunc(f.catchalls, func(e *entry) bool { return f.Config.Pools[e.pool].Range.Contains(a) })
}

// serves reports whether a is the router or a DNS server of the subnet.
func (s *Subnet) serves(a netip.Addr) bool { return a == s.Router || slices.Contains(s.DNS, a) }
