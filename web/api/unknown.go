package api

import (
	"net/http"
	"slices"

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
		return follow(w, r, &a.watched().unknowns, &unknownList, everything)
	}
	return unknownList.Answer(w, r, a.Unknowns.List())
}

func (a *API) forgetUnknown(w http.ResponseWriter, r *http.Request) error {
	mac, err := pools.ParseMAC(r.PathValue("mac"))
	if err != nil {
		return answer.BadRequest("%v", err)
	}
	if route.IsDryRun(r) {
		err = a.CheckForget(mac, client(r))
	} else {
		err = a.Forget(mac, client(r))
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// CheckForget returns an error if no unknown machine has the MAC, or if the client must not
// remove it.
func (a *API) CheckForget(mac pools.MAC, by auth.Client) error {
	all := a.Unknowns.List()
	i := slices.IndexFunc(all, func(u pools.Unknown) bool { return u.MAC == mac })
	if i < 0 {
		return answer.NotFound("no unknown machine has the MAC %s", mac)
	}
	return by.May(all[i].Pool)
}

// Forget removes a machine from the unknown machines for a client. Its next DISCOVER adds
// it again.
func (a *API) Forget(mac pools.MAC, by auth.Client) error {
	if err := a.CheckForget(mac, by); err != nil {
		return err
	}
	a.Unknowns.Forget(mac)
	a.Log.Info("unknown machine forgotten", "mac", mac, "client", by.Address)
	a.record(by, "forget unknown machine "+mac.String(), "")
	return nil
}
