package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"drover/pools"
	"drover/pools/ilo"
)

// apiWriter writes the changes of one chassis to a running server: all, or none.
// The API takes one node at a time, so that what was done is undone when
// something is refused.
type apiWriter struct {
	api  *apiClient
	undo []apiStep
}

// apiStep is a call of the API.
type apiStep struct {
	method, path string
	body         any
}

// apply does the changes.
func (w *apiWriter) apply(ctx context.Context, changes []ilo.Change) error {
	for _, s := range apiSteps(changes) {
		err := w.api.call(ctx, s.do.method, s.do.path, s.do.body, nil)
		if err == nil {
			w.undo = append(w.undo, s.undo)
			continue
		}
		if back := w.back(context.WithoutCancel(ctx)); back != nil {
			return fmt.Errorf("%w; and what was done before could not be undone: %w", err, back)
		}
		return err
	}
	return nil
}

// back undoes what was done, the last first.
func (w *apiWriter) back(ctx context.Context) error {
	var errs []error
	for _, s := range slices.Backward(w.undo) {
		errs = append(errs, w.api.call(ctx, s.method, s.path, s.body, nil))
	}
	return errors.Join(errs...)
}

// doneUndone is a step and what takes it back.
type doneUndone struct{ do, undo apiStep }

// apiSteps orders the calls so that none of them makes two nodes have one MAC or
// one address, not even for a moment: a node that gives one to another is taken
// away first and comes back last.
func apiSteps(changes []ilo.Change) []doneUndone {
	var away, first, last []doneUndone
	for _, c := range changes {
		if c.New == nil || c.Kind == ilo.Same {
			continue
		}
		add := apiStep{http.MethodPost, nodesPath, c.New}
		remove := apiStep{http.MethodDelete, nodePath(c.Name), nil}
		switch {
		case c.Old == nil:
			last = append(last, doneUndone{add, remove})
		case givesAway(c, changes):
			away = append(away, doneUndone{remove, apiStep{http.MethodPost, nodesPath, c.Old}})
			last = append(last, doneUndone{add, remove})
		default:
			first = append(first, doneUndone{
				apiStep{http.MethodPatch, nodePath(c.Name), nodePatch(*c.New)},
				apiStep{http.MethodPatch, nodePath(c.Name), nodePatch(*c.Old)},
			})
		}
	}
	return slices.Concat(away, first, last)
}

// givesAway tells whether another node gets what c has.
func givesAway(c ilo.Change, changes []ilo.Change) bool {
	return slices.ContainsFunc(changes, func(o ilo.Change) bool {
		if o.New == nil || o.Name == c.Name {
			return false
		}
		return c.Old.IP.IsValid() && c.Old.IP == o.New.IP ||
			slices.ContainsFunc(o.New.MACs, func(m pools.MAC) bool { return slices.Contains(c.Old.MACs, m) })
	})
}

// nodePatch is what import changes of a node, as a merge patch (RFC 7386): null
// takes a field away.
func nodePatch(n pools.PoolNode) map[string]any {
	p := map[string]any{"macs": n.MACs, "tags": nil, "ip": nil, "ignore": nil}
	if len(n.Tags) > 0 {
		p["tags"] = n.Tags
	}
	if n.IP.IsValid() {
		p["ip"] = n.IP
	}
	if n.Ignore {
		p["ignore"] = true
	}
	return p
}
