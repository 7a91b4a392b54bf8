package authz

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/resolve"
	"drover/web/answer"
	"drover/web/auth"
)

// scope returns an error for a node to which the change gives a name or a tag that the client's
// pools do not have, or an address that is not for them.
func (m *Machines) scope(by auth.Client, c pools.NodeChange) error {
	n := c.New
	if n == nil {
		return nil
	}
	if err := m.retired(by, n); err != nil {
		return err
	}
	old := c.Old
	if old == nil {
		old = &pools.PoolNode{}
	}
	kept, name := old.Tags, old.Name
	if !slices.Equal(old.MACs, n.MACs) || old.Match != n.Match || old.ChassisSlot != n.ChassisSlot {
		kept, name = nil, "" // they would go to another machine
	}
	if n.Name != name || n.Pool != old.Pool {
		if err := m.named(by, n); err != nil {
			return err
		}
	}
	for _, tag := range n.Tags {
		if slices.Contains(kept, tag) || m.hasTag(by, tag) {
			continue
		}
		return forbidden("tags", "use the tags of its pool; a client without pools can add others to the pool's delegates",
			fmt.Sprintf("node %q would have the tag %q, which none of the pools %q of %q has", n.Name, tag, by.Pools, by.Name))
	}
	for _, a := range []netip.Addr{n.IP, n.IP6} {
		if a.IsValid() && a != old.IP && a != old.IP6 {
			if err := m.address(by, n.Name, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// named returns an error for a node whose name is none of those that its pool delegates.
func (m *Machines) named(by auth.Client, n *pools.PoolNode) error {
	for _, p := range m.Farm.Config.Pools {
		if p.Name == n.Pool && len(p.DelegateNames) > 0 && !resolve.Fits(p.DelegateNames, n.Name) {
			return forbidden("name", "choose another name; a client without pools can add others to the pool's delegateNames",
				fmt.Sprintf("the name %q is none of %s, which %q may give nodes of the pool %q", n.Name, strings.Join(p.DelegateNames, ", "), by.Name, p.Name))
		}
	}
	return nil
}

// maxNodes bounds the nodes of a pool that clients limited to it add to.
const maxNodes = 4096

// quota returns an error if the changes of a client make more nodes in one of its pools than it may
// have.
func (m *Machines) quota(by auth.Client, changes []pools.NodeChange) error {
	more := map[string]int{}
	for _, c := range changes {
		if c.Old != nil {
			more[c.Old.Pool]--
		}
		if c.New != nil {
			more[c.New.Pool]++
		}
	}
	for pool, n := range more {
		if n <= 0 {
			continue
		}
		if there := m.Farm.NodesOf(pool); there+n > maxNodes {
			return forbidden("pool", "remove nodes that are not needed, or ask a client without pools to add them",
				fmt.Sprintf("the pool %q has %d nodes, and %q can make them %d at most", pool, there, by.Name, maxNodes))
		}
	}
	return nil
}

// hasTag reports whether one of the client's pools has a tag, or delegates it.
func (m *Machines) hasTag(by auth.Client, tag string) bool {
	return slices.ContainsFunc(m.Farm.Config.Pools, func(p pools.Pool) bool {
		return slices.Contains(by.Pools, p.Name) && (slices.Contains(p.Tags, tag) || slices.Contains(p.Delegates, tag))
	})
}

// address returns an error for an address that a node of the client must not have.
func (m *Machines) address(by auth.Client, node string, a netip.Addr) error {
	for _, p := range m.Farm.Config.Pools {
		if !slices.Contains(by.Pools, p.Name) && (p.Range.Contains(a) || p.Range6.Contains(a)) {
			return forbidden("ip", "choose an address outside of the ranges of other pools",
				fmt.Sprintf("node %q would have %s, which pool %q leases", node, a, p.Name))
		}
	}
	if !m.Farm.Leasable(a) && !m.Farm.Reserved(a) {
		return forbidden("ip", "choose an address of the pool's machines",
			fmt.Sprintf("node %q would have %s, which is the address of a router, a server or a relay agent", node, a))
	}
	return nil
}

// forbidden returns an error with status 403.
func forbidden(field, remedy, text string) error {
	return &answer.Error{Code: http.StatusForbidden, Name: answer.CodeForbidden, Field: field, Remedy: remedy, Msg: text}
}
