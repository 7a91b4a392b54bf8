package machines

import (
	"net/netip"
	"slices"

	"drover/pools"
)

// Declares reports whether a node has the MAC.
func (d *Directory) Declares(mac pools.MAC) bool { return d.Farm.Farm().Declares(mac) }

// Known reports whether a MAC is a machine's: a node declares it, or it holds a lease now.
// A lease that ended says nothing, so that its end undoes what a packet did.
func (d *Directory) Known(mac pools.MAC) bool {
	if d.Declares(mac) {
		return true
	}
	for _, leases := range [...]Leases{d.Leases, d.Leases6} {
		if leases == nil {
			continue
		}
		if l, ok := leases.Of(mac); ok && l.Active(d.now()) {
			return true
		}
	}
	return false
}

// Leased returns the IPv4 address that a MAC leases, or leased last; the zero Addr if there is
// none.
func (d *Directory) Leased(mac pools.MAC) netip.Addr {
	if d.Leases == nil {
		return netip.Addr{}
	}
	l, ok := d.Leases.Of(mac)
	if !ok {
		l, _ = d.Leases.Named(pools.CatchAllName(mac))
	}
	return l.Address
}

// Routers returns the addresses of the routers of the declared subnets, those of relay agents
// that the config lists among them.
func (d *Directory) Routers() (all []netip.Addr) {
	for _, s := range d.Farm.Farm().Config.Subnets {
		if s.Router.IsValid() {
			all = append(all, s.Router)
		}
		all = append(all, s.Relays...)
	}
	return all
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
