package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
)

// maxBoots bounds the answer to a list of boots, and is the default limit.
const maxBoots = 1000

const bootsPath = "/api/v1/boots"

func (a *API) bootRoutes() []route.Route {
	return []route.Route{
		{
			Method: "GET", Path: bootsPath, Role: pools.RoleViewer,
			Summary: "Boots, the newest first. Without sort, machines that no node declares fill more than half of a list only where there are no others",
			Query: append(
				bootList.Parameters(),
				route.Parameter{Name: "stuck", About: "only boots that make no progress", Kind: route.Bool},
				route.Parameter{Name: "since", About: "only boots that began at this time or later", Kind: route.Time},
				route.Parameter{Name: "before", About: "only boots before the one with this ID"},
			), Watch: true, Status: 200, Answer: []boots.Record{}, Handle: a.listBoots,
		},
		{
			Method: "DELETE", Path: bootsPath + "/{node}", Summary: "Forget the boots of a node", Role: pools.RoleOperator,
			Status: 204, Errors: noSuch, Handle: a.forgetBoots,
		},
	}
}

var bootList = listing.List[boots.Record]{Max: maxBoots, Newest: true, Columns: []listing.Column[boots.Record]{
	{Name: "id", Of: func(b *boots.Record) string { return b.ID }},
	{Name: "node", Of: func(b *boots.Record) string { return b.Node }},
	{Name: "pool", Of: func(b *boots.Record) string { return b.Pool }},
	{Name: "cluster", Of: func(b *boots.Record) string { return b.Cluster }},
	{Name: "image", Of: func(b *boots.Record) string { return b.Image }},
	{Name: "generation", Of: func(b *boots.Record) string { return b.Generation }},
	{Name: "mac", Of: func(b *boots.Record) string { return b.MAC.String() }},
}}

// listBoots answers with timelines, the newest first. With ?before= the list is a page: the
// next one begins before the ID of its last boot.
func (a *API) listBoots(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	f := newBootFilter(query)
	fits := both(sees(client(r), func(b *boots.Record) string { return b.Pool }), f.fits)
	if route.IsWatch(r) {
		return follow(w, r, &a.watched().boots, &bootList, fits)
	}
	all := slices.DeleteFunc(a.allBoots(), func(b boots.Record) bool { return !fits(&b) })
	if query.Get("sort") != "" || query.Get("cursor") != "" {
		return bootList.Answer(w, r, all)
	}
	all = bootList.Filter(query, all)
	limit := limitOf(query, maxBoots)
	if f.before != "" {
		answer.JSON(w, http.StatusOK, all[:min(limit, len(all))])
		return nil
	}
	answer.JSON(w, http.StatusOK, newest(all, limit))
	return nil
}

// allBoots returns all boots, the newest first, with what is stuck.
func (a *API) allBoots() []boots.Record { return boots.MarkStuck(a.Boots.List(), a.Now()) }

// limitOf returns the number of elements that a list is limited to.
func limitOf(query url.Values, usual int) int {
	if n, err := strconv.Atoi(query.Get("limit")); err == nil { // the table has checked it
		return n
	}
	return usual
}

// bootFilter is the filter of a list of boots, besides those of its columns.
type bootFilter struct {
	before string
	stuck  bool
	since  time.Time
}

// newBootFilter reads a query that the table has checked.
func newBootFilter(query url.Values) (f bootFilter) {
	f.before = query.Get("before")
	f.stuck, _ = strconv.ParseBool(query.Get("stuck"))
	f.since, _ = time.Parse(time.RFC3339, query.Get("since"))
	return f
}

func (f *bootFilter) fits(b *boots.Record) bool {
	return (!f.stuck || b.Stuck != nil) && !b.Started.Before(f.since) && (f.before == "" || b.ID < f.before)
}

// forgetBoots removes the boots of a node.
func (a *API) forgetBoots(w http.ResponseWriter, r *http.Request) error {
	forget := a.ForgetBoots
	if route.IsDryRun(r) {
		forget = a.CheckForgetBoots
	}
	if err := forget([]string{r.PathValue("node")}, client(r))[0]; err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// ForgetBoots removes the boots of nodes for a client. It returns an error for each node whose
// boots stay, in the order of names.
func (a *API) ForgetBoots(names []string, by auth.Client) []error {
	errs := a.CheckForgetBoots(names, by)
	var entries []pools.AuditEntry
	for i, name := range names {
		if errs[i] == nil {
			a.Boots.Forget(name)
			entries = append(entries, a.entry(by, "forget boots", name))
		}
	}
	a.recordAll(entries)
	return errs
}

// CheckForgetBoots returns the errors that [API.ForgetBoots] would return.
func (a *API) CheckForgetBoots(names []string, by auth.Client) []error {
	inPool := map[string]string{}
	for _, b := range slices.Backward(a.Boots.List()) { // of each node the newest counts
		inPool[b.Node] = b.Pool
	}
	farm, errs := a.Farm.Farm(), make([]error, len(names))
	for i, name := range names {
		pool, ok := inPool[name]
		if !ok {
			errs[i] = answer.NotFound("no boot of node %q is known", name)
			continue
		}
		if n, ok := farm.Node(name); ok {
			pool = n.Pool
		}
		errs[i] = by.May(pool)
	}
	return errs
}

// newest returns at most limit boots of a list that is sorted newest first. Half of them
// may be of machines that no node declares, more only in place of none: anyone can begin
// boots of invented machines, which must not hide the others.
func newest(all []boots.Record, limit int) []boots.Record {
	share := max(1, limit/2)
	shown := make([]boots.Record, 0, min(limit, len(all))) // not nil: [] rather than null
	var rest []boots.Record
	for _, b := range all {
		switch {
		case len(shown) == limit:
			return shown
		case !b.Unknown:
			shown = append(shown, b)
		case share > 0:
			shown = append(shown, b)
			share--
		default:
			rest = append(rest, b)
		}
	}
	if room := min(limit-len(shown), len(rest)); room > 0 {
		shown = append(shown, rest[:room]...)
		slices.SortFunc(shown, boots.NewestFirst)
	}
	return shown
}
