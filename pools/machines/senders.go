package machines

import (
	"net/netip"
	"slices"

	"drover/pools"
)

// Declares reports whether a node has the MAC, be it a retired one: its machine is one all the same.
func (d *Directory) Declares(mac pools.MAC) bool {
	f := d.Farm.Farm()
	_, retired := f.RetiredOf(mac)
	return retired || f.Declares(mac)
}

// Leased returns the addresses of both families that a MAC leases, or leased last. An address says
// nothing until its host answers for it: anyone can lease one in the name of another.
func (d *Directory) Leased(mac pools.MAC) (all []netip.Addr) {
	for _, leases := range [...]Leases{d.Leases, d.Leases6} {
		if leases == nil {
			continue
		}
		l, ok := leases.Of(mac)
		if !ok {
			l, ok = leases.Named(pools.CatchAllName(mac))
		}
		if ok {
			all = append(all, l.Address)
		}
	}
	return all
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
