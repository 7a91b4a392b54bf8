package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"drover/pools"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
)

func (a *API) farmRoutes() []route.Route {
	return []route.Route{
		{
			Method: "GET", Path: "/api/v1/pools", Summary: "All pools, each with the number of its nodes", Role: pools.RoleViewer,
			Query: poolList.Parameters(), Status: 200, Answer: []pools.PoolInfo{}, Handle: a.listPools,
		},
		{
			Method: "GET", Path: "/api/v1/tags", Summary: "All tags, each with the pools and the number of nodes that name it; their settings are in the config", Role: pools.RoleViewer,
			Query: tagList.Parameters(), Status: 200, Answer: []pools.TagInfo{}, Handle: a.listTags,
		},
		{
			Method: "GET", Path: "/api/v1/clusters", Summary: "All clusters, each with its pools and the number of their nodes", Role: pools.RoleViewer,
			Query: clusterList.Parameters(), Status: 200, Answer: []pools.ClusterInfo{}, Handle: a.listClusters,
		},
		{
			Method: "GET", Path: "/api/v1/clusters/{cluster}/token", Summary: "The newest shared join token of a cluster, for clusters that share tokens", Role: pools.RoleAdmin, Secret: true,
			Status: 200, Answer: pools.JoinToken{}, Errors: []int{404, 409, 503}, Handle: a.sharedToken,
		},
	}
}

var poolList = listing.List[pools.PoolInfo]{Max: 10_000, Columns: []listing.Column[pools.PoolInfo]{
	{Name: "name", Of: func(p *pools.PoolInfo) string { return p.Name }},
	{Name: "cluster", Of: func(p *pools.PoolInfo) string { return p.Cluster }},
	{Name: "image", Of: func(p *pools.PoolInfo) string { return p.Image }},
	{Name: "tag", All: func(p *pools.PoolInfo) []string { return p.Tags }},
	{Name: "nodes", Of: func(p *pools.PoolInfo) string { return fmt.Sprint(p.Nodes) }, SortOnly: true},
}}

var tagList = listing.List[pools.TagInfo]{Max: 10_000, Columns: []listing.Column[pools.TagInfo]{
	{Name: "name", Of: func(t *pools.TagInfo) string { return t.Name }},
	{Name: "pool", All: func(t *pools.TagInfo) []string { return t.Pools }},
	{Name: "nodes", Of: func(t *pools.TagInfo) string { return fmt.Sprint(t.Nodes) }, SortOnly: true},
}}

var clusterList = listing.List[pools.ClusterInfo]{Max: 10_000, Columns: []listing.Column[pools.ClusterInfo]{
	{Name: "name", Of: func(c *pools.ClusterInfo) string { return c.Name }},
	{Name: "pool", All: func(c *pools.ClusterInfo) []string { return c.Pools }},
	{Name: "nodes", Of: func(c *pools.ClusterInfo) string { return fmt.Sprint(c.Nodes) }, SortOnly: true},
}}

// Pools returns the pools that a client may see, in the order of the config.
func (a *API) Pools(by auth.Client) []pools.PoolInfo {
	farm := a.Farm.Farm()
	nodes := map[string]int{}
	for _, n := range farm.Nodes() {
		nodes[n.Pool]++
	}
	var all []pools.PoolInfo
	for _, p := range farm.Config.Pools {
		if by.May(p.Name) != nil {
			continue
		}
		all = append(all, pools.PoolInfo{
			Name: p.Name, Cluster: p.Cluster, Image: p.Image, Tags: p.Tags, Nodes: nodes[p.Name],
			CatchAll: p.CatchAll, Ignore: p.Ignore, Range: p.Range, Range6: p.Range6,
		})
	}
	return all
}

func (a *API) listPools(w http.ResponseWriter, r *http.Request) error {
	return poolList.Answer(w, r, a.Pools(client(r)))
}

func (a *API) listTags(w http.ResponseWriter, r *http.Request) error {
	return tagList.Answer(w, r, a.Tags(client(r)))
}

// Tags returns the tags that a client may see, by name: all, or those that its pools have or
// delegate.
func (a *API) Tags(by auth.Client) (all []pools.TagInfo) {
	farm := a.Farm.Farm()
	tags := map[string]*pools.TagInfo{}
	for name := range farm.Config.Tags {
		if !by.Limited() || name == "all" {
			tags[name] = &pools.TagInfo{Name: name}
		}
	}
	ofPool := map[string][]string{}
	for _, p := range farm.Config.Pools {
		if by.May(p.Name) != nil {
			continue
		}
		ofPool[p.Name] = p.Tags
		for _, name := range slices.Concat(p.Tags, p.Delegates) {
			if tags[name] == nil {
				tags[name] = &pools.TagInfo{Name: name}
			}
		}
		for _, name := range p.Tags {
			if t := tags[name]; t != nil {
				t.Pools = append(t.Pools, p.Name)
			}
		}
	}
	for _, n := range farm.Nodes() {
		if by.May(n.Pool) != nil {
			continue
		}
		names := map[string]bool{}
		for _, name := range slices.Concat(ofPool[n.Pool], n.Tags) {
			names[name] = true
		}
		for name := range names {
			if t := tags[name]; t != nil {
				t.Nodes++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, *tags[name])
	}
	return all
}

func (a *API) listClusters(w http.ResponseWriter, r *http.Request) error {
	return clusterList.Answer(w, r, a.Clusters(client(r)))
}

// Clusters returns the clusters that a client may see, in the order of the config: all, or those
// that its pools join.
func (a *API) Clusters(by auth.Client) (all []pools.ClusterInfo) {
	for _, c := range a.Farm.Farm().Config.Clusters {
		all = append(all, pools.ClusterInfo{Name: c.Name, Endpoint: c.Endpoint, Hosted: c.ControlPlane != nil})
	}
	for _, p := range a.Pools(by) {
		if i := slices.IndexFunc(all, func(c pools.ClusterInfo) bool { return c.Name == p.Cluster }); i >= 0 {
			all[i].Pools, all[i].Nodes = append(all[i].Pools, p.Name), all[i].Nodes+p.Nodes
		}
	}
	if by.Limited() {
		all = slices.DeleteFunc(all, func(c pools.ClusterInfo) bool { return len(c.Pools) == 0 })
	}
	return all
}

// text returns an address as text; empty for none.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// texts returns MACs as texts.
func texts(macs []pools.MAC) (all []string) {
	for _, m := range macs {
		all = append(all, m.String())
	}
	return all
}
