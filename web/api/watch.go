package api

import (
	"net/http"
	"sync"

	"drover/pools"
	"drover/pools/boots"
	"drover/web/answer"
	"drover/web/listing"
	"drover/web/watch"
)

// feeds are the lists whose changes can be watched.
type feeds struct {
	once sync.Once

	nodes      watch.Feed[pools.NodeInfo]
	shownNodes watch.Feed[pools.NodeInfo] // for clients that see no secrets
	boots      watch.Feed[boots.Record]
	leases     watch.Feed[pools.LeaseInfo]
	unknowns   watch.Feed[pools.Unknown]
}

// watched returns the feeds, which it makes the first time.
func (a *API) watched() *feeds {
	f := &a.feeds
	f.once.Do(func() {
		f.nodes.All, f.shownNodes.All, f.boots.All, f.leases.All, f.unknowns.All = a.allNodes, a.shownNodes, a.allBoots, a.allLeases, a.Unknowns.List
		limit := watch.NewLimit()
		f.nodes.Limit, f.shownNodes.Limit, f.boots.Limit, f.leases.Limit, f.unknowns.Limit = limit, limit, limit, limit, limit
		f.nodes.Key, f.shownNodes.Key = nodeList.Columns[0].Of, nodeList.Columns[0].Of
		f.boots.Key = bootList.Columns[0].Of
		f.leases.Key = leaseList.Columns[0].Of
		f.unknowns.Key = unknownList.Columns[0].Of
		f.boots.Shown = func(all []boots.Record) []boots.Record { return newest(all, maxBoots) }
	})
	return f
}

// follow answers with the changes of a list, as far as its query describes them and they
// fit.
func follow[T any](w http.ResponseWriter, r *http.Request, f *watch.Feed[T], l *listing.List[T], fit func(*T) bool) error {
	query := r.URL.Query()
	for _, name := range []string{"sort", "limit", "cursor", "before"} {
		if query.Get(name) != "" {
			return answer.BadParameter(name, "leave it out", "%s is not for a watch", name)
		}
	}
	fits := l.Fits(query)
	return f.Serve(w, r, func(v *T) bool { return fits(v) && fit(v) })
}
