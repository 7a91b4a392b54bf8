package authz

import (
	"fmt"
	"net/netip"
	"slices"

	"drover/pools"
	"drover/web/auth"
)

// retired returns an error for a node that would take the name, a MAC or an address of a node that
// the config has lost, of a pool that is not the client's. That node would not come back.
func (m *Machines) retired(by auth.Client, n *pools.PoolNode) error {
	kept := func(field string, was pools.PoolNode, retired bool) error {
		if !retired || slices.Contains(by.Pools, was.Pool) {
			return nil
		}
		return forbidden(field, "choose another, or ask a client without pools",
			fmt.Sprintf("node %q would have a name, a MAC or an address that is kept for a node which the config has lost", n.Name))
	}
	was, ok := m.Farm.RetiredNode(n.Name)
	err := kept("name", was, ok)
	for _, mac := range n.MACs {
		if was, ok = m.Farm.RetiredOf(mac); err == nil {
			err = kept("macs", was, ok)
		}
	}
	for _, a := range []netip.Addr{n.IP, n.IP6} {
		if was, ok = m.Farm.RetiredAt(a); err == nil {
			err = kept("ip", was, ok)
		}
	}
	return err
}
