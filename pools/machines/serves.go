package machines

import (
	"net/netip"
	"slices"
)

// Serves reports whether TFTP and the node-facing HTTP listeners answer the host at an
// address. They answer loopback addresses, the declared subnets, the networks of
// server.clients, and declared nodes. Where the config declares no subnets, the networks
// of [Directory.Local] count. Any host can send a request in the name of a host
// elsewhere, which would get the answer.
func (d *Directory) Serves(addr netip.Addr) bool {
	addr = addr.Unmap()
	f := d.Farm.Farm()
	switch {
	case addr.IsLoopback(), f.Config.SubnetOf(addr) >= 0, holds(f.Config.Server.Clients, addr), f.Reserved(addr):
		return true
	}
	return len(f.Config.Subnets) == 0 && holds(d.Local, addr)
}

// holds reports whether one of the networks holds an address.
func holds(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
