package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"drover/pools"
	"drover/web/answer"
)

// Leases is the lease table.
type Leases interface {
	// List returns all leases, also expired ones, in any order. The caller may
	// change the list.
	List() []pools.Lease
	// End frees an address that a machine holds, or that is in quarantine. It
	// returns false when there is no such lease.
	End(addr netip.Addr, now time.Time) bool
}

// listLeases answers with the leases, sorted by address.
func (a *API) listLeases(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	pool, state := query.Get("pool"), query.Get("state")
	if state != "" && !slices.Contains(pools.LeaseStates(), state) {
		return answer.BadRequest("state %q: want one of %q", state, pools.LeaseStates())
	}
	leases, now := a.Leases.List(), a.Now()
	out := []pools.LeaseInfo{} // [] rather than null
	for _, l := range leases {
		s := l.State(now)
		if (pool == "" || l.Pool == pool) && (state == "" || string(s) == state) {
			out = append(out, pools.LeaseInfo{Lease: l, State: s})
		}
	}
	slices.SortFunc(out, func(a, b pools.LeaseInfo) int { return a.Address.Compare(b.Address) })
	answer.JSON(w, http.StatusOK, out)
	return nil
}

// endLease frees an address: it ends its lease or its quarantine.
func (a *API) endLease(w http.ResponseWriter, r *http.Request) error {
	addr, err := netip.ParseAddr(r.PathValue("address"))
	if err != nil {
		return answer.BadRequest("%q is not an IP address", r.PathValue("address"))
	}
	was := a.lease(addr)
	state := was.State(a.Now())
	if dryRun(r) && was.Address.IsValid() && (state == pools.LeaseActive || state == pools.LeaseDeclined) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if dryRun(r) || !a.Leases.End(addr, a.Now()) {
		return &answer.Error{Code: http.StatusNotFound, Msg: fmt.Sprintf("no lease of %s is in force, and it is not in quarantine", addr)}
	}
	a.Log.Info("lease ended", "address", addr, "mac", was.MAC, "node", was.Node, "pool", was.Pool, "declined", was.Declined, "client", r.RemoteAddr)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// lease returns the lease of an address; the zero Lease when there is none.
func (a *API) lease(addr netip.Addr) pools.Lease {
	for _, l := range a.Leases.List() {
		if l.Address == addr {
			return l
		}
	}
	return pools.Lease{}
}
