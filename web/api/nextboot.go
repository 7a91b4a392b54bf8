package api

import (
	"net/http"

	"drover/pools"
	"drover/web/answer"
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
	if err := a.mayChange(r, name); err != nil {
		return err
	}
	if ref, ok := next.Image(); ok {
		if err := a.CheckImage(ref); err != nil {
			return answer.BadRequest("%v", err)
		}
	}
	if route.IsDryRun(r) {
		return a.node(w, name, http.StatusOK)
	}
	if err := a.NextBoots.Set(name, next); err != nil {
		return err
	}
	a.record(client(r), "next boot "+string(next), name)
	return a.node(w, name, http.StatusOK)
}

// clearNextBoot removes the next boot of a node, which then boots as its pool defines.
func (a *API) clearNextBoot(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := a.mayChange(r, name); err != nil {
		return err
	}
	if !route.IsDryRun(r) {
		if err := a.NextBoots.Set(name, ""); err != nil {
			return err
		}
		a.record(client(r), "clear next boot", name)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// mayChange returns an error if there is no node of that name, or if the client of a
// request must not change it.
func (a *API) mayChange(r *http.Request, name string) error {
	n, ok := a.Farm.Farm().Node(name)
	if !ok {
		return noNode(name)
	}
	return client(r).May(n.Pool)
}

// withNext returns a node with its next boot.
func (a *API) withNext(n pools.NodeInfo) pools.NodeInfo {
	n.NextBoot = a.NextBoots.Pending(n.Name)
	return n
}
