package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"drover/pools"
	"drover/pools/audit"
	"drover/pools/config/decode"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
)

func (a *API) nodeRoutes() []route.Route {
	const one = NodesPath + "/{name}"
	catchAll := route.Parameter{Name: "catchall", About: "also machines of catch-all pools that have booted", Kind: route.Bool}
	return []route.Route{
		{
			Method: "GET", Path: NodesPath, Summary: "All nodes, declared or added, each with its status", Role: pools.RoleViewer,
			Query: append(nodeList.Parameters(), catchAll), Watch: true, Status: 200, Answer: []pools.NodeInfo{}, Handle: a.listNodes,
		},
		{
			Method: "POST", Path: NodesPath, Summary: "Add a node: a node as in the config file, and its pool", Role: pools.RoleOperator,
			Body: pools.PoolNode{}, Status: 201, Answer: pools.NodeInfo{}, Errors: []int{409}, Handle: a.addNode,
		},
		{
			Method: "GET", Path: one, Summary: "A node", Role: pools.RoleViewer, Conditional: true,
			Status: 200, Answer: pools.NodeInfo{}, Errors: []int{404, 412}, Handle: a.getNode,
		},
		{
			Method: "PATCH", Path: one, Summary: "Change a node that was added over the API", Role: pools.RoleOperator, Conditional: true,
			Body: pools.PoolNode{}, Patch: true, Status: 200, Answer: pools.NodeInfo{}, Errors: noChange, Handle: a.patchNode,
		},
		{
			Method: "DELETE", Path: one, Summary: "Remove a node that was added over the API", Role: pools.RoleOperator, Conditional: true,
			Status: 204, Errors: noChange, Handle: a.removeNode,
		},
		{
			Method: "POST", Path: NodesPath + ":batch", Summary: "Several changes of nodes, all of them or none", Role: pools.RoleOperator,
			Body: pools.NodeBatch{}, Status: 200, Answer: pools.NodesChanged{}, Errors: []int{404, 409}, Handle: a.changeNodes,
		},
		{
			Method: "PUT", Path: one + "/next-boot", Summary: "Set what the next boot of a node does, once", Role: pools.RoleOperator,
			Body: pools.NextBootRequest{}, Status: 200, Answer: pools.NodeInfo{}, Errors: noSuch, Handle: a.setNextBoot,
		},
		{
			Method: "DELETE", Path: one + "/next-boot", Summary: "Let the next boot of a node be as its pool says", Role: pools.RoleOperator,
			Status: 204, Errors: noSuch, Handle: a.clearNextBoot,
		},
	}
}

// NodesPath is the path of nodes.
const NodesPath = "/api/v1/nodes"

// maxNodes bounds a page of nodes.
const maxNodes = 20_000

var nodeList = listing.List[pools.NodeInfo]{Max: maxNodes, Columns: []listing.Column[pools.NodeInfo]{
	{Name: "name", Of: func(n *pools.NodeInfo) string { return n.Name }},
	{Name: "pool", Of: func(n *pools.NodeInfo) string { return n.Pool }},
	{Name: "tag", All: func(n *pools.NodeInfo) []string {
		return append(slices.Clip(n.Status.PoolTags), n.Tags...)
	}},
	{Name: "state", Of: func(n *pools.NodeInfo) string { return string(n.Status.State) }},
	{Name: "cluster", Of: func(n *pools.NodeInfo) string { return n.Status.Cluster }},
	{Name: "image", Of: func(n *pools.NodeInfo) string { return n.Status.Image }},
	{Name: "image.generation", Of: func(n *pools.NodeInfo) string { return n.Status.Generation }},
	{Name: "image.outdated", Of: func(n *pools.NodeInfo) string { return strconv.FormatBool(n.Status.Outdated) }, Words: []string{"true", "false"}},
	{Name: "power", Of: func(n *pools.NodeInfo) string { return n.Status.Power }},
	{Name: "chassis", Of: func(n *pools.NodeInfo) string { return n.ChassisSlot.Chassis }},
	{Name: "address", Of: func(n *pools.NodeInfo) string { return text(n.Status.Address) }},
	{Name: "mac", All: func(n *pools.NodeInfo) []string { return texts(n.MACs) }},
	{Name: "since", Of: func(n *pools.NodeInfo) string { return listing.Time(n.Status.Since) }, SortOnly: true},
}}

// withMoves sets the next boots and moves of nodes, and returns them.
func (a *API) withMoves(infos ...pools.NodeInfo) []pools.NodeInfo {
	moves := map[string]*pools.Move{}
	for _, m := range a.Moves() {
		moves[m.As] = &m
	}
	for i := range infos {
		n := &infos[i]
		n.NextBoot, n.Move = a.NextBoots.Pending(n.Name), moves[n.Name]
	}
	return infos
}

// listNodes answers with all nodes, and with ?catchall=true also with the machines of
// catch-all pools.
func (a *API) listNodes(w http.ResponseWriter, r *http.Request) error {
	catchAll := r.URL.Query().Get("catchall") == "true"
	fits := both(sees(client(r), nodePool), func(n *pools.NodeInfo) bool { return catchAll || !n.CatchAll })
	list, feed := a.shownNodes, &a.watched().shownNodes
	if client(r).SeesSecrets() {
		list, feed = a.allNodes, &a.watched().nodes
	}
	if route.IsWatch(r) {
		return follow(w, r, feed, &nodeList, fits)
	}
	all := slices.DeleteFunc(list(), func(n pools.NodeInfo) bool { return !fits(&n) })
	if slices.ContainsFunc(all, func(n pools.NodeInfo) bool { return hasOptions(&n.PoolNode) }) {
		w.Header().Set("Cache-Control", "no-store, no-transform") // it has secrets
	}
	return nodeList.Answer(w, r, all)
}

func (a *API) getNode(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	n, ok := a.Farm.Farm().Node(name)
	if !ok || client(r).May(n.Pool) != nil {
		return noNode(name)
	}
	if err := ifMatch(r, &n.PoolNode); err != nil {
		return err
	}
	return a.node(w, r, name, http.StatusOK)
}

func noNode(name string) error { return fmt.Errorf("%w: %q", pools.ErrNotFound, name) }

// node answers with the current node of that name, as the client may see it.
func (a *API) node(w http.ResponseWriter, r *http.Request, name string, code int) error {
	n, ok := a.Farm.Farm().Node(name)
	if !ok {
		return noNode(name)
	}
	w.Header().Set("ETag", etag(&n.PoolNode))
	info := a.withStatus(a.withMoves(n), a.observe(nil), nil)[0]
	info.PoolNode = shown(info.PoolNode, client(r))
	answer.JSON(w, code, info)
	return nil
}

func (a *API) addNode(w http.ResponseWriter, r *http.Request) error {
	var n pools.PoolNode
	if err := readJSON(r, &n); err != nil {
		return err
	}
	if route.IsDryRun(r) {
		return a.preview(w, r, pools.NodeChange{New: &n})
	}
	if err := a.AddNode(n, client(r)); err != nil {
		return err
	}
	w.Header().Set("Location", NodesPath+"/"+n.Name)
	return a.node(w, r, n.Name, http.StatusCreated)
}

// AddNode adds a node for a client, and removes its MACs from the unknown machines.
func (a *API) AddNode(n pools.PoolNode, by auth.Client) error {
	if err := a.mayChange([]pools.NodeChange{{New: &n}}, by); err != nil {
		return err
	}
	if err := a.Nodes.AddNode(n); err != nil {
		return err
	}
	for _, m := range n.MACs {
		a.Unknowns.Forget(m)
	}
	a.Log.Info("node added", "node", n.Name, "pool", n.Pool, "macs", n.MACs, "ip", n.IP, "who", by)
	a.record(by, "add node", n.Name, audit.Changes(pools.NodeChange{New: &n})...)
	return nil
}

func (a *API) patchNode(w http.ResponseWriter, r *http.Request) error {
	patch, err := readBody(r, "application/merge-patch+json", "application/json")
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	edit := func(n pools.PoolNode) (pools.PoolNode, error) {
		old := n
		if err := ifMatch(r, &n); err != nil {
			return n, err
		}
		if err := client(r).May(n.Pool); err != nil {
			return n, err
		}
		if err := decode.JSON(patch, &n); err != nil {
			return n, err
		}
		return n, a.mayChange([]pools.NodeChange{{Old: &old, New: &n}}, client(r))
	}
	if route.IsDryRun(r) {
		return a.previewPatch(w, r, name, edit)
	}
	var made pools.NodeChange
	err = a.Nodes.UpdateNode(name, func(n pools.PoolNode) (pools.PoolNode, error) {
		old := n
		n, err := edit(n)
		made = pools.NodeChange{Old: &old, New: &n}
		return n, err
	})
	if err != nil {
		return err
	}
	a.record(client(r), "change node", name, audit.Changes(made)...)
	return a.node(w, r, name, http.StatusOK)
}

func (a *API) removeNode(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	n, ok := a.Farm.Farm().Node(name)
	if !ok {
		return noNode(name)
	}
	if err := client(r).May(n.Pool); err != nil {
		return err
	}
	if err := ifMatch(r, &n.PoolNode); err != nil {
		return err
	}
	change := pools.NodeChange{Old: &n.PoolNode}
	if route.IsDryRun(r) {
		return a.preview(w, r, change)
	}
	// The node that is removed is the one that was checked.
	if err := a.Nodes.ChangeNodes([]pools.NodeChange{change}); err != nil {
		return unmatched(r, err)
	}
	a.record(client(r), "remove node", name, audit.Changes(change)...)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
