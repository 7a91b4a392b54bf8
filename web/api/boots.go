package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"drover/pools/boots"
	"drover/web/answer"
)

// maxBoots bounds the answer to a list of boots, and is the default limit.
const maxBoots = 1000

// listBoots answers with timelines, the newest first. With ?before= the list is a page: the
// next one begins before the ID of its last boot.
func (a *API) listBoots(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit, err := limitOf(query, maxBoots, maxBoots)
	if err != nil {
		return err
	}
	f, err := newBootFilter(query)
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(boots.MarkStuck(a.Boots.List(), a.Now()), func(b boots.Record) bool { return !f.fits(&b) })
	if f.before != "" {
		answer.JSON(w, http.StatusOK, all[:min(limit, len(all))])
		return nil
	}
	answer.JSON(w, http.StatusOK, newest(all, limit))
	return nil
}

// bootFilter is the filter of a list of boots.
type bootFilter struct {
	node, pool, before string
	stuck              bool
	since              time.Time
}

func newBootFilter(query url.Values) (f bootFilter, err error) {
	f.node, f.pool, f.before = query.Get("node"), query.Get("pool"), query.Get("before")
	if s := query.Get("stuck"); s != "" {
		if f.stuck, err = strconv.ParseBool(s); err != nil {
			return f, answer.BadRequest("stuck %q: want true or false", s)
		}
	}
	if s := query.Get("since"); s != "" {
		if f.since, err = time.Parse(time.RFC3339, s); err != nil {
			return f, answer.BadRequest("since %q: want a time such as 2026-11-20T12:00:00Z", s)
		}
	}
	return f, nil
}

func (f *bootFilter) fits(b *boots.Record) bool {
	return (f.node == "" || b.Node == f.node) && (f.pool == "" || b.Pool == f.pool) && (!f.stuck || b.Stuck != nil) &&
		!b.Started.Before(f.since) && (f.before == "" || b.ID < f.before)
}

// forgetBoots removes the boots of a node.
func (a *API) forgetBoots(w http.ResponseWriter, r *http.Request) error {
	node := r.PathValue("node")
	if !slices.ContainsFunc(a.Boots.List(), func(b boots.Record) bool { return b.Node == node }) {
		return &answer.Error{Code: http.StatusNotFound, Msg: fmt.Sprintf("no boot of node %q is known", node)}
	}
	if !dryRun(r) {
		a.Boots.Forget(node)
		a.record(byToken(r), "forget boots", node)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
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
