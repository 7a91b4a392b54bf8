package config

import (
	"fmt"
	"net/netip"
	"slices"

	"drover/pools"
	"drover/pools/config/mistake"
)

// refuseTaken returns an error for a node that gets an address of the infrastructure, or a MAC of
// this server.
func (l *Live) refuseTaken(nodes []pools.PoolNode) error {
	var errs mistake.Errors
	fail := func(n *pools.PoolNode, hint, msg string) {
		errs = append(errs, &mistake.Error{Origin: n.Origin(), Msg: fmt.Sprintf("node %q: %s", n.Name, msg), Hint: hint, Added: true})
	}
	own := localMACs()
	for i := range nodes {
		n := &nodes[i]
		old, _ := l.Farm().Node(n.Name)
		for _, a := range [...]netip.Addr{n.IP, n.IP6} {
			if !a.IsValid() || a == old.IP || a == old.IP6 {
				continue
			}
			if what := l.Farm().Infrastructure(a); what != "" {
				fail(n, "choose another: a machine has an address of its own", fmt.Sprintf("%s is the address of %s", a, what))
			}
		}
		for _, m := range n.MACs {
			if !slices.Contains(old.MACs, m) && slices.Contains(own, m) {
				fail(n, "see the label on the machine", fmt.Sprintf("MAC %s is that of this server", m))
			}
		}
	}
	return errs.Err()
}

// refuseLeased returns an error for a node that gets an address which another machine
// leases. A chassis chooses the addresses of its nodes itself, and tries again: they wait
// for theirs.
func (l *Live) refuseLeased(nodes []pools.PoolNode) error {
	for i := range nodes {
		n := &nodes[i].Node
		old, _ := l.Farm().Node(n.Name)
		if !n.ChassisSlot.IsZero() {
			continue
		}
		for _, a := range [...]netip.Addr{n.IP, n.IP6} {
			if a == old.IP || a == old.IP6 {
				continue
			}
			if err := l.leasedTo(n, a); err != nil {
				return err
			}
		}
	}
	return nil
}
