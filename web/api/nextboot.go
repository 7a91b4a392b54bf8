package api

import (
	"fmt"
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
	// Set sets the next boot of nodes, durably: of all or of none. An empty next removes it.
	Set(next pools.NextBoot, nodes ...string) error
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
	if err := a.changeNextBoot(r, name, next); err != nil {
		return err
	}
	return a.node(w, r, name, http.StatusOK)
}

// clearNextBoot removes the next boot of a node, which then boots as its pool defines.
func (a *API) clearNextBoot(w http.ResponseWriter, r *http.Request) error {
	if err := a.changeNextBoot(r, r.PathValue("name"), ""); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) changeNextBoot(r *http.Request, name string, next pools.NextBoot) error {
	change := a.SetNextBoots
	if route.IsDryRun(r) {
		change = a.CheckNextBoots
	}
	return change([]string{name}, next, client(r))[0]
}

// SetNextBoots sets the next boot of nodes for a client; an empty next removes it. It returns
// an error for each node that stays as it is, in the order of names.
func (a *API) SetNextBoots(names []string, next pools.NextBoot, by auth.Client) []error {
	errs := a.CheckNextBoots(names, next, by)
	action := "clear next boot"
	if next != "" {
		action = "next boot " + string(next)
	}
	var good []string
	var entries []pools.AuditEntry
	for i, name := range names {
		if errs[i] == nil {
			good = append(good, name)
			was := a.NextBoots.Pending(name)
			entries = append(entries, a.entry(by, action, name, pools.AuditChange{Field: "nextBoot", Before: string(was), After: string(next)}))
		}
	}
	if err := a.NextBoots.Set(next, good...); err != nil {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
		}
		return errs
	}
	if len(good) > 0 && next != "" {
		a.FallBacks.Clear(good...) // the operator has seen to them
	}
	a.recordAll(entries)
	return errs
}

// CheckNextBoots returns the errors that [API.SetNextBoots] would return.
func (a *API) CheckNextBoots(names []string, next pools.NextBoot, by auth.Client) []error {
	var bad error
	if ref, ok := next.Image(); ok {
		if !a.mayBoot(by)(pools.ImageName(ref)) {
			bad = &answer.Error{
				Code: http.StatusForbidden, Name: answer.CodeForbidden, Field: "nextBoot", Remedy: "choose an image of its pools, or ask a client without pools",
				Msg: fmt.Sprintf("the image %q is that of other pools, and %q is limited to the pools %q", ref, by.Name, by.Pools),
			}
		} else if err := a.CheckImage(ref); err != nil {
			bad = answer.BadRequest("%v", err)
		}
	}
	farm, errs := a.Farm.Farm(), make([]error, len(names))
	for i, name := range names {
		if n, ok := farm.Node(name); !ok {
			errs[i] = noNode(name)
		} else if errs[i] = by.May(n.Pool); errs[i] == nil {
			errs[i] = bad
		}
	}
	return errs
}
