// Package adopt makes nodes of unknown machines: it gives them names and addresses.
//
// The package does not know where machines are listed, or how nodes are stored.
package adopt

import (
	"errors"
	"fmt"
	"net/netip"

	"drover/pools"
)

// ErrNoAddress is the error of a machine whose network is full.
var ErrNoAddress = errors.New("its network has no free address")

// Rule says what the nodes are. Name must be set.
type Rule struct {
	Pool  string
	Tags  []string // after those of the pool
	First int      // number of the first machine
	// Name returns the name of the node for a machine with a number.
	Name func(u *pools.Unknown, number int) (string, error)
	// Free returns up to n free addresses of a network, the lowest first: of the one that the
	// address link is in, or that this relay agent serves; "" is the only network. nil: nodes
	// get no address.
	Free func(link string, n int) ([]netip.Addr, error)
}

// Nodes returns the nodes for machines, in their order. The error has all mistakes in names.
func (r *Rule) Nodes(machines []pools.Unknown) ([]pools.PoolNode, error) {
	nodes, errs := make([]pools.PoolNode, len(machines)), make([]error, len(machines))
	for i := range machines {
		u := &machines[i]
		nodes[i] = pools.PoolNode{Pool: r.Pool, Node: pools.Node{MACs: []pools.MAC{u.MAC}, Tags: r.Tags}}
		nodes[i].Name, errs[i] = r.Name(u, r.First+i)
	}
	if err := errors.Join(errs...); err != nil || r.Free == nil {
		return nodes, err
	}
	return nodes, r.addresses(nodes, machines)
}

// addresses gives each node a free address of the network that its machine asked from. Several
// links can be in one network.
func (r *Rule) addresses(nodes []pools.PoolNode, machines []pools.Unknown) error {
	free, given := map[string][]netip.Addr{}, map[netip.Addr]bool{}
	for i := range machines {
		link := linkOf(&machines[i])
		all, asked := free[link]
		if !asked {
			var err error
			if all, err = r.Free(link, len(machines)); err != nil {
				return err
			}
		}
		for len(all) > 0 && given[all[0]] {
			all = all[1:]
		}
		if len(all) == 0 {
			return fmt.Errorf("%s: %w", machines[i].MAC, ErrNoAddress)
		}
		nodes[i].IP, free[link], given[all[0]] = all[0], all[1:], true
	}
	return nil
}

// linkOf returns the link that a machine asked from.
func linkOf(u *pools.Unknown) string {
	switch {
	case u.Relay.IsValid():
		return u.Relay.String()
	case u.Address.IsValid():
		return u.Address.String()
	}
	return ""
}
