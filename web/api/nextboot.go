package api

import (
	"fmt"
	"net/http"

	"drover/pools"
	"drover/web/answer"
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
	var body struct {
		NextBoot string `json:"nextBoot"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	next, err := pools.ParseNextBoot(body.NextBoot)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if _, ok := a.Farm.Farm().Node(name); !ok {
		return fmt.Errorf("%w: %q", pools.ErrNotFound, name)
	}
	if ref, ok := next.Image(); ok {
		if err := a.CheckImage(ref); err != nil {
			return answer.BadRequest("%v", err)
		}
	}
	if dryRun(r) {
		return a.node(w, name, http.StatusOK)
	}
	if err := a.NextBoots.Set(name, next); err != nil {
		return err
	}
	a.record(byToken(r), "next boot "+string(next), name)
	return a.node(w, name, http.StatusOK)
}

// clearNextBoot removes the next boot of a node, which then boots as its pool defines.
func (a *API) clearNextBoot(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if _, ok := a.Farm.Farm().Node(name); !ok {
		return fmt.Errorf("%w: %q", pools.ErrNotFound, name)
	}
	if !dryRun(r) {
		if err := a.NextBoots.Set(name, ""); err != nil {
			return err
		}
		a.record(byToken(r), "clear next boot", name)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// withNext returns a node with its next boot.
func (a *API) withNext(n pools.NodeInfo) pools.NodeInfo {
	n.NextBoot = a.NextBoots.Pending(n.Name)
	return n
}
