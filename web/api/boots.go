package api

import (
	"net/http"
	"slices"

	"drover/pools/boots"
	"drover/web/answer"
)

// maxBoots bounds the answer to a list of boots, and is the default limit.
const maxBoots = 1000

// listBoots answers with timelines, the newest first.
func (a *API) listBoots(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := onlyParameters(query, "node", "limit"); err != nil {
		return err
	}
	limit, err := limitOf(query, maxBoots, maxBoots)
	if err != nil {
		return err
	}
	all := boots.MarkStuck(a.Boots.List(), a.Now())
	if name := query.Get("node"); name != "" {
		all = slices.DeleteFunc(all, func(b boots.Record) bool { return b.Node != name })
	}
	answer.JSON(w, http.StatusOK, newest(all, limit))
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
