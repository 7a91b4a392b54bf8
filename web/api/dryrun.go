package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"drover/pools"
	"drover/web/answer"
)

// dryRunParameter asks a request that changes something to check the change alone.
const dryRunParameter = "dryRun"

// dryRun reports whether a request must not change anything.
func dryRun(r *http.Request) bool {
	only, _ := strconv.ParseBool(r.URL.Query().Get(dryRunParameter))
	return only
}

// checked returns handlers that refuse unknown parameters. Those of GET are given; each
// other method has dryRun alone.
func checked(m answer.Methods, parameters []string) answer.Methods {
	out := answer.Methods{}
	for method, h := range m {
		known := []string{dryRunParameter}
		if method == http.MethodGet {
			known = parameters
		}
		out[method] = func(w http.ResponseWriter, r *http.Request) error {
			query, err := url.ParseQuery(r.URL.RawQuery)
			if err != nil {
				return answer.BadRequest("the query is not one: %v", err)
			}
			if err := onlyParameters(query, known...); err != nil {
				return err
			}
			if s := query.Get(dryRunParameter); s != "" && s != "true" && s != "false" {
				return answer.BadRequest("dryRun %q: want true or false", s)
			}
			return h(w, r)
		}
	}
	return out
}

// onlyParameters returns an error for a query with a parameter that is not known, or that
// is there twice.
func onlyParameters(query url.Values, known ...string) error {
	for key, values := range query {
		switch {
		case !slices.Contains(known, key):
			return answer.BadRequest("unknown parameter %q (there are %q)", key, known)
		case len(values) > 1:
			return answer.BadRequest("parameter %q is there %d times", key, len(values))
		}
	}
	return nil
}

// preview answers with the node as a change would leave it, or with 204 if it would be gone.
func (a *API) preview(w http.ResponseWriter, c pools.NodeChange) error {
	if err := a.Nodes.CheckNodes([]pools.NodeChange{c}); err != nil {
		return err
	}
	if c.New == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	answer.JSON(w, http.StatusOK, pools.NodeInfo{PoolNode: *c.New, Source: c.New.Origin()})
	return nil
}

// previewPatch is [API.preview] for the edit of a node.
func (a *API) previewPatch(w http.ResponseWriter, name string, edit func(pools.PoolNode) (pools.PoolNode, error)) error {
	old, ok := a.Farm.Farm().Node(name)
	if !ok {
		return fmt.Errorf("%w: %q", pools.ErrNotFound, name)
	}
	changed, err := edit(old.PoolNode)
	if err == nil && changed.Name != name {
		err = answer.BadRequest("node %q cannot be renamed to %q here", name, changed.Name)
	}
	if err != nil {
		return err
	}
	return a.preview(w, pools.NodeChange{Old: &old.PoolNode, New: &changed})
}
