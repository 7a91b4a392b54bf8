package api

import (
	"net/http"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
)

// Unknowns is the table of unknown machines.
type Unknowns interface {
	// List returns all unknown machines, the last seen first. The caller may change
	// the list.
	List() []pools.Unknown
	// Forget removes a machine. It returns false when the machine is not listed.
	Forget(mac pools.MAC) bool
}

const unknownPath = "/api/v1/unknown"

var unknownList = listing.List[pools.Unknown]{Max: 10_000, Columns: []listing.Column[pools.Unknown]{
	{Name: "mac", Of: func(u *pools.Unknown) string { return u.MAC.String() }},
	{Name: "pool", Of: func(u *pools.Unknown) string { return u.Pool }},
	{Name: "firmware", Of: func(u *pools.Unknown) string { return string(u.Firmware) }},
	{Name: "address", Of: func(u *pools.Unknown) string { return text(u.Address) }},
	{Name: "first", Of: func(u *pools.Unknown) string { return listing.Time(u.First) }, SortOnly: true},
	{Name: "last", Of: func(u *pools.Unknown) string { return listing.Time(u.Last) }, SortOnly: true},
}}

func (a *API) listUnknowns(w http.ResponseWriter, r *http.Request) error {
	if route.IsWatch(r) {
		return follow(w, r, &a.watched().unknowns, &unknownList, seesUnknown(client(r)))
	}
	return unknownList.Answer(w, r, a.UnknownsOf(client(r)))
}

func (a *API) forgetUnknown(w http.ResponseWriter, r *http.Request) error {
	mac, err := pools.ParseMAC(r.PathValue("mac"))
	if err != nil {
		return answer.BadRequest("%v", err)
	}
	forget := a.Forget
	if route.IsDryRun(r) {
		forget = a.CheckForget
	}
	if err := forget([]pools.MAC{mac}, client(r))[0]; err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// CheckForget returns the errors that [API.Forget] would return.
func (a *API) CheckForget(macs []pools.MAC, by auth.Client) []error {
	inPool := map[pools.MAC]string{}
	for _, u := range a.Unknowns.List() {
		inPool[u.MAC] = u.Pool
	}
	errs := make([]error, len(macs))
	for i, m := range macs {
		if pool, ok := inPool[m]; ok {
			errs[i] = by.May(pool)
		} else {
			errs[i] = answer.NotFound("no unknown machine has the MAC %s", m)
		}
	}
	return errs
}

// Forget removes machines from the unknown machines for a client. The next DISCOVER of one
// adds it again. It returns an error for each that stays, in the order of macs: no unknown
// machine has the MAC, or the client must not remove it.
func (a *API) Forget(macs []pools.MAC, by auth.Client) []error {
	errs := a.CheckForget(macs, by)
	var entries []pools.AuditEntry
	for i, m := range macs {
		if errs[i] != nil {
			continue
		}
		a.Unknowns.Forget(m)
		a.Log.Info("unknown machine forgotten", "mac", m, "client", by.Address)
		entries = append(entries, a.entry(by, "forget unknown machine "+m.String(), ""))
	}
	a.recordAll(entries)
	return errs
}
