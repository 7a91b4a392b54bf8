package api

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"drover/internal/natural"
	"drover/pools"
	"drover/web/answer"
)

// getOverview answers with the farm at this moment.
func (a *API) getOverview(w http.ResponseWriter, r *http.Request) error {
	by := client(r)
	all := seen(by, a.allNodes(), nodePool)
	o := pools.Overview{
		Ready: true, Problems: []pools.PartProblem{}, Pools: []pools.PoolStates{}, Stuck: []pools.StuckCause{},
		Nodes: map[string]int{}, Images: map[string]int{}, Leases: map[string]int{}, Unknown: len(a.UnknownsOf(by)),
	}
	for _, p := range a.Ready(r.Context()) {
		o.Problems = append(o.Problems, pools.PartProblem{Part: p.Part, Problem: p.Problem, Warning: p.Warning})
		o.Ready = o.Ready && p.Warning
	}
	if a.Pin != nil {
		o.Pin = a.Pin()
	}
	now := a.Now()
	for _, l := range a.LeasesOf(by) {
		o.Leases[string(l.State(now))]++
	}
	count(&o, all)
	answer.JSON(w, http.StatusOK, o)
	return nil
}

// count counts nodes by state, pool, image and what they are stuck at.
func count(o *pools.Overview, nodes []pools.NodeInfo) {
	byPool, causes := map[string]*pools.PoolStates{}, map[string][]string{}
	for i := range nodes {
		n := &nodes[i]
		p := byPool[n.Pool]
		if p == nil {
			p = &pools.PoolStates{Name: n.Pool, States: map[string]int{}}
			byPool[n.Pool] = p
		}
		p.Nodes++
		p.States[string(n.Status.State)]++
		o.Nodes[string(n.Status.State)]++
		if n.Status.Image != "" {
			o.Images[n.Status.Image]++
		}
		if n.Status.Outdated {
			o.Outdated++
		}
		if n.Status.State == pools.NodeStuck {
			causes[n.Status.Detail] = append(causes[n.Status.Detail], n.Name)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(byPool), natural.Compare) {
		o.Pools = append(o.Pools, *byPool[name])
	}
	for cause, names := range causes {
		slices.SortFunc(names, natural.Compare)
		o.Stuck = append(o.Stuck, pools.StuckCause{Cause: cause, Nodes: names})
	}
	slices.SortFunc(o.Stuck, func(a, b pools.StuckCause) int {
		return cmp.Or(len(b.Nodes)-len(a.Nodes), cmp.Compare(a.Cause, b.Cause))
	})
}
