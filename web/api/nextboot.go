package api

import (
	"net/http"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/route"
)

// NextBoots is the table of next boots.
type NextBoots interface {
	// Pending returns the pending next boot of a node; empty: none.
	Pending(node string) pools.NextBoot
	// Set sets the next boot of a node, durably. An empty next removes it.
	Set(node string, next pools.NextBoot) error
}

// setNextBoot sets the next boot of a node: PUT {"nextBoot": "local"}.
func (a *API) setNextBoot(w http.ResponseWriter, r *http.Request) error {
	var body pools.NextBootRequest
	if err := readJSON(r, &body); err != nil {
		return err
	}
	next, err := pools.ParseNextBoot(body.NextBoot)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	change := a.SetNextBoot
	if route.IsDryRun(r) {
		change = a.CheckNextBoot
	}
	if err := change(name, next, client(r)); err != nil {
		return err
	}
	return a.node(w, name, http.StatusOK)
}

// SetNextBoot sets the next boot of a node for a client; an empty next removes it.
func (a *API) SetNextBoot(name string, next pools.NextBoot, by auth.Client) error {
	if err := a.CheckNextBoot(name, next, by); err != nil {
		return err
	}
	was := a.NextBoots.Pending(name)
	if err := a.NextBoots.Set(name, next); err != nil {
		return err
	}
	action := "clear next boot"
	if next != "" {
		action = "next boot " + string(next)
	}
	a.record(by, action, name, pools.AuditChange{Field: "nextBoot", Before: string(was), After: string(next)})
	return nil
}

// CheckNextBoot returns the error that [API.SetNextBoot] would return.
func (a *API) CheckNextBoot(name string, next pools.NextBoot, by auth.Client) error {
	n, ok := a.Farm.Farm().Node(name)
	if !ok {
		return noNode(name)
	}
	if err := by.May(n.Pool); err != nil {
		return err
	}
	if ref, ok := next.Image(); ok {
		if err := a.CheckImage(ref); err != nil {
			return answer.BadRequest("%v", err)
		}
	}
	return nil
}

// clearNextBoot removes the next boot of a node, which then boots as its pool defines.
func (a *API) clearNextBoot(w http.ResponseWriter, r *http.Request) error {
	change := a.SetNextBoot
	if route.IsDryRun(r) {
		change = a.CheckNextBoot
	}
	if err := change(r.PathValue("name"), "", client(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// withNext returns a node with its next boot.
func (a *API) withNext(n pools.NodeInfo) pools.NodeInfo {
	n.NextBoot = a.NextBoots.Pending(n.Name)
	return n
}
