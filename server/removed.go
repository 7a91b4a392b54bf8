package server

import (
	"errors"
	"slices"

	"drover/pools"
	"drover/pools/config"
	"drover/state"
)

// forgetRemoved removes the boots and next boots of nodes that are in the farm no longer and not
// retired, so that no page and no metric counts them. The boots of a renamed node follow it.
func (s *Server) forgetRemoved() {
	s.Store.Boots.Reconcile(func(mac pools.MAC, node string) string {
		farm := s.Live.Farm() // the newest: a node can come while this runs
		if farm.Has(node) {
			return node
		}
		if n, ok := farm.NodeOf(mac); ok || !farm.IsRetired(node) {
			return n.Name
		}
		return node
	})
	keep := func(node string) bool { return s.Live.Farm().Has(node) || s.Live.Farm().IsRetired(node) }
	if err := s.Store.NextBoots.Keep(keep); err != nil {
		s.log.Error("next boots of removed nodes stay", "err", err)
	}
	s.Store.FallBacks.Edit(func(node string, t pools.ImageTrial) pools.ImageTrial {
		if !keep(node) {
			return pools.ImageTrial{}
		}
		return t
	})
}

// nodesChanged tells the parts that nodes were changed over the API: the clusters reconcile
// labels and taints, and nodes of pools of gateways are hosts of them. A change can make room for
// objects, too.
func (s *Server) nodesChanged() {
	if s.Live.Refitted() {
		s.farmChanged()
		return
	}
	isGateway := func(p pools.Pool) bool { return p.Role == pools.RoleGateway }
	if farm := s.Live.Farm(); slices.ContainsFunc(farm.Config.Pools, isGateway) {
		s.changing.Lock()
		s.clusters.Set(s.Live.Farm().Clusters())
		s.changing.Unlock()
	}
	s.clusters.Refresh()
	s.forgetRemoved()
}

// changes is the live farm, with a hook after each successful change of nodes.
type changes struct {
	live    *config.Live
	next    *state.NextBoots
	changed func()
}

// changes returns the live farm for the parts that change nodes.
func (s *Server) changes() changes { return changes{s.Live, s.Store.NextBoots, s.nodesChanged} }

func (c changes) done(err error) error {
	if err == nil {
		c.changed()
	}
	return err
}

// AddNode implements [api.Changer].
func (c changes) AddNode(n pools.PoolNode) error { return c.done(c.live.AddNode(n)) }

// CheckNodes implements [api.Changer].
func (c changes) CheckNodes(all []pools.NodeChange) error { return c.live.CheckNodes(all) }

// ChangeNodes implements [api.Changer]. The next boot of a renamed node follows it.
func (c changes) ChangeNodes(all []pools.NodeChange) error {
	if err := c.live.ChangeNodes(all); err != nil {
		return err
	}
	moved := map[string]pools.NextBoot{}
	for _, n := range all {
		if n.Old != nil && n.New != nil && n.Old.Name != n.New.Name {
			moved[n.New.Name] = c.next.Pending(n.Old.Name)
		}
	}
	var errs []error
	for name, boot := range moved { // after all were read: two nodes can exchange their names
		errs = append(errs, c.next.Set(boot, name))
	}
	return errors.Join(append(errs, c.done(nil))...)
}

// UpdateNode implements [api.Changer].
func (c changes) UpdateNode(name string, edit func(pools.PoolNode) (pools.PoolNode, error)) error {
	return c.done(c.live.UpdateNode(name, edit))
}

// ForgetRetired implements [api.Changer].
func (c changes) ForgetRetired(names ...string) error { return c.done(c.live.ForgetRetired(names...)) }
