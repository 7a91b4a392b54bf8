package machines

import (
	"net/netip"
	"slices"

	"drover/pools/resolve"
)

// Serves reports whether TFTP and the node-facing HTTP listeners answer the host at an
// address. They answer loopback addresses, the declared subnets, the networks of
// server.clients, declared nodes, and the other servers of server.also. Where the config declares no subnets, the networks
// of [resolve.Farm.Locals] count. Any host can send a request in the name of a host
// elsewhere, which would get the answer.
func (d *Directory) Serves(addr netip.Addr) bool {
	addr = addr.Unmap()
	f := d.Farm.Farm()
	switch {
	case addr.IsLoopback(), f.Config.SubnetOf(addr) >= 0, holds(f.Config.Server.Clients, addr), f.Reserved(addr):
		return true
	case slices.ContainsFunc(f.Config.Server.Others(), func(a netip.AddrPort) bool { return a.Addr() == addr }):
		return true
	}
	return len(f.Config.Subnets) == 0 && isLocal(f, addr)
}

// holds reports whether one of the networks holds an address.
func holds(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// isLocal reports whether an address is in a network of this server's interfaces.
func isLocal(f *resolve.Farm, addr netip.Addr) bool {
	return slices.ContainsFunc(f.Locals(), func(l resolve.Local) bool { return l.Prefix.Contains(addr) })
}
