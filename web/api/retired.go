package api

import (
	"net/http"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
)

func (a *API) retiredRoutes() []route.Route {
	const path = "/api/v1/retired"
	return []route.Route{
		{
			Method: "GET", Path: path, Summary: "The nodes that the config has lost, which keep their names, addresses and boots for a while", Role: pools.RoleViewer,
			Query: retiredList.Parameters(), Status: 200, Answer: []pools.RetiredNode{}, Handle: a.listRetired,
		},
		{
			Method: "DELETE", Path: path + "/{name}", Summary: "Forget a node that the config has lost, before its time", Role: pools.RoleOperator,
			Status: 204, Errors: noSuch, Handle: a.forgetRetired,
		},
	}
}

var retiredList = listing.List[pools.RetiredNode]{Max: 10_000, Columns: []listing.Column[pools.RetiredNode]{
	{Name: "name", Of: func(n *pools.RetiredNode) string { return n.Name }},
	{Name: "pool", Of: func(n *pools.RetiredNode) string { return n.Pool }},
	{Name: "since", Of: func(n *pools.RetiredNode) string { return listing.Time(n.Since) }, SortOnly: true},
}}

// RetiredOf returns the retired nodes that a client may see.
func (a *API) RetiredOf(by auth.Client) (all []pools.RetiredNode) {
	for _, n := range a.Farm.Farm().Retired() {
		if by.May(n.Pool) == nil {
			n.PoolNode = shown(n.PoolNode, by)
			all = append(all, n)
		}
	}
	return all
}

func (a *API) listRetired(w http.ResponseWriter, r *http.Request) error {
	if client(r).SeesSecrets() {
		w.Header().Set("Cache-Control", "no-store, no-transform")
	}
	return retiredList.Answer(w, r, a.RetiredOf(client(r)))
}

func (a *API) forgetRetired(w http.ResponseWriter, r *http.Request) error {
	by, name := client(r), r.PathValue("name")
	n, ok := a.Farm.Farm().RetiredNode(name)
	if !ok {
		return answer.NotFound("no retired node has the name %q", name)
	}
	err := by.May(n.Pool)
	if err == nil && !route.IsDryRun(r) {
		if err = a.Nodes.ForgetRetired(name); err == nil {
			a.record(by, "forget retired node", name)
		}
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
