package api

import (
	"net/http"

	"drover/pools"
	"drover/pools/audit"
	"drover/web/answer"
	"drover/web/api/authz"
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

// mayChange returns an error if the client must not make one of the changes.
func (a *API) mayChange(changes []pools.NodeChange, by auth.Client) error {
	m := authz.Machines{Farm: a.Farm.Farm(), Places: a.Hardware.Places, Unknowns: a.Unknowns.List, Leases: a.Leases.List, Now: a.Now()}
	return m.Change(by, changes)
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
