package machines

import (
	"net/netip"
	"slices"

	"drover/pools"
)

// Declares reports whether a node has the MAC.
func (d *Directory) Declares(mac pools.MAC) bool { return d.Farm.Farm().Declares(mac) }

// Known reports whether a MAC is a machine's: a node declares it, or it has a lease, even
// an expired one, or as unknown hardware a released one.
func (d *Directory) Known(mac pools.MAC) bool {
	if d.Declares(mac) {
		return true
	}
	for _, leases := range [...]Leases{d.Leases, d.Leases6} {
		if leases == nil {
			continue
		}
		if _, ok := leases.Of(mac); ok {
			return true
		}
		if _, ok := leases.Named(pools.CatchAllName(mac)); ok {
			return true
		}
	}
	return false
}

// InRange reports whether a pool leases the address.
func (d *Directory) InRange(addr netip.Addr) bool { return d.Farm.Farm().InRange(addr) }

// InSubnet reports whether an address is in a declared subnet, or, where none is
// declared, in a network of the server.
func (d *Directory) InSubnet(addr netip.Addr) bool {
	f := d.Farm.Farm()
	if len(f.Config.Subnets) > 0 {
		return f.Config.SubnetOf(addr) >= 0
	}
	return isLocal(f, addr)
}

// OneNetwork reports whether a network link and an address are in declared subnets of one
// network.
func (d *Directory) OneNetwork(link, addr netip.Addr) bool {
	return d.Farm.Farm().OneNetwork(link, addr)
}

// ListsRelay reports whether the config lists an address as that of a relay agent.
func (d *Directory) ListsRelay(addr netip.Addr) bool {
	return slices.ContainsFunc(d.Farm.Farm().Config.Subnets, func(s pools.Subnet) bool { return slices.Contains(s.Relays, addr) })
}
