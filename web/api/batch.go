package api

import (
	"net/http"

	"drover/pools"
	"drover/pools/audit"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/route"
)

// changeNodes makes changes of several nodes in one step: all of them or none.
func (a *API) changeNodes(w http.ResponseWriter, r *http.Request) error {
	var body pools.NodeBatch
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.Changes == nil {
		return answer.BadRequest(`want {"changes": [{"old": NODE, "new": NODE}]}, where a node that is new has no old, and one to be removed no new`)
	}
	change := a.ChangeNodes
	if route.IsDryRun(r) {
		change = a.CheckNodes
	}
	if err := change(body.Changes, client(r)); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, pools.NodesChanged{Changed: len(body.Changes)})
	return nil
}

// ChangeNodes changes nodes for a client: it makes all of the changes or none.
func (a *API) ChangeNodes(changes []pools.NodeChange, by auth.Client) error {
	if err := a.mayChange(changes, by); err != nil {
		return err
	}
	if err := a.Nodes.ChangeNodes(changes); err != nil {
		return err
	}
	a.recordChanges(by, changes)
	return nil
}

// CheckNodes returns the error that [API.ChangeNodes] would return.
func (a *API) CheckNodes(changes []pools.NodeChange, by auth.Client) error {
	if err := a.mayChange(changes, by); err != nil {
		return err
	}
	return a.Nodes.CheckNodes(changes)
}

// mayChange returns an error if the client must not make one of the changes: it changes a node
// of another pool, or takes a machine that another pool has.
func (a *API) mayChange(changes []pools.NodeChange, by auth.Client) error {
	if !by.Limited() {
		return nil
	}
	taken := map[pools.MAC]bool{}
	for _, c := range changes {
		for _, n := range []*pools.PoolNode{c.Old, c.New} {
			if n == nil {
				continue
			}
			if err := by.May(n.Pool); err != nil {
				return err
			}
			for _, m := range n.MACs {
				taken[m] = true
			}
		}
	}
	for _, c := range changes {
		if c.Old != nil {
			for _, m := range c.Old.MACs {
				delete(taken, m)
			}
		}
	}
	return a.mayTake(taken, by)
}

// mayTake returns an error if one of these machines is in a pool that the client must not
// change: that in which it asked last, or of its lease.
func (a *API) mayTake(macs map[pools.MAC]bool, by auth.Client) error {
	if len(macs) == 0 {
		return nil
	}
	for _, u := range a.Unknowns.List() {
		if !macs[u.MAC] || u.Pool == "" {
			continue
		}
		if err := by.May(u.Pool); err != nil {
			return err
		}
	}
	now := a.Now()
	for _, l := range a.Leases.List() {
		if !macs[l.MAC] || !l.Active(now) {
			continue
		}
		if err := by.May(l.Pool); err != nil {
			return err
		}
	}
	return nil
}

// recordChanges adds changes of nodes to the audit and the log, and removes the MACs of the
// nodes from the unknown machines.
func (a *API) recordChanges(by auth.Client, changes []pools.NodeChange) {
	var entries []pools.AuditEntry
	for _, c := range changes {
		e := a.entry(by, "change node", "", audit.Changes(c)...)
		switch {
		case c.New == nil:
			e.Action, e.Node = "remove node", c.Old.Name
		case c.Old == nil:
			e.Action, e.Node = "add node", c.New.Name
		case c.Old.Name != c.New.Name:
			e.Action, e.Node = "rename node "+c.Old.Name, c.New.Name
		default:
			e.Node = c.New.Name
		}
		if c.New != nil {
			for _, m := range c.New.MACs {
				a.Unknowns.Forget(m)
			}
		}
		entries = append(entries, e)
	}
	a.recordAll(entries)
}
