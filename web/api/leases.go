package api

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/audit"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
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

const leasesPath = "/api/v1/leases"

var leaseList = listing.List[pools.LeaseInfo]{Max: 100_000, Columns: []listing.Column[pools.LeaseInfo]{
	{Name: "address", Of: func(l *pools.LeaseInfo) string { return l.Address.String() }},
	{Name: "pool", Of: func(l *pools.LeaseInfo) string { return l.Pool }},
	{Name: "state", Of: func(l *pools.LeaseInfo) string { return string(l.State) }, Words: pools.LeaseStates()},
	{Name: "node", Of: func(l *pools.LeaseInfo) string { return l.Node }},
	{Name: "mac", Of: func(l *pools.LeaseInfo) string { return l.MAC.String() }},
	{Name: "expires", Of: func(l *pools.LeaseInfo) string { return listing.Time(l.Expires) }, SortOnly: true},
}}

func (a *API) addressRoutes() []route.Route {
	return []route.Route{
		{
			Method: "GET", Path: leasesPath, Summary: "Leased addresses, and those in quarantine", Role: pools.RoleViewer,
			Query: leaseList.Parameters(), Watch: true, Status: 200, Answer: []pools.LeaseInfo{}, Handle: a.listLeases,
		},
		{
			Method: "DELETE", Path: leasesPath + "/{address}", Summary: "End a lease, or lift a quarantine", Role: pools.RoleOperator,
			Status: 204, Errors: noSuch, Handle: a.endLease,
		},
		{
			Method: "GET", Path: "/api/v1/addresses", Summary: "Free addresses for nodes, in one subnet", Role: pools.RoleViewer,
			Query: []route.Parameter{
				{Name: "link", About: "an address of the subnet, or its relay agent; default: the only subnet of IPv4"},
				{Name: "limit", About: "how many", Kind: route.Count, Max: maxAddresses},
			}, Status: 200, Answer: []netip.Addr{}, Handle: a.listAddresses,
		},
		{
			Method: "GET", Path: unknownPath, Summary: "Machines that asked for an address and that no node declares, the last seen first", Role: pools.RoleViewer,
			Query: unknownList.Parameters(), Watch: true, Status: 200, Answer: []pools.Unknown{}, Handle: a.listUnknowns,
		},
		{
			Method: "DELETE", Path: unknownPath + "/{mac}", Summary: "Forget an unknown machine; it returns when it asks again", Role: pools.RoleOperator,
			Status: 204, Errors: noSuch, Handle: a.forgetUnknown,
		},
	}
}

func (a *API) listLeases(w http.ResponseWriter, r *http.Request) error {
	if route.IsWatch(r) {
		return follow(w, r, &a.watched().leases, &leaseList, everything)
	}
	return leaseList.Answer(w, r, a.allLeases())
}

// allLeases returns the leases, sorted by address.
func (a *API) allLeases() (all []pools.LeaseInfo) {
	now := a.Now()
	for _, l := range a.Leases.List() {
		all = append(all, pools.LeaseInfo{Lease: l, State: l.State(now)})
	}
	slices.SortFunc(all, func(a, b pools.LeaseInfo) int { return a.Address.Compare(b.Address) })
	return all
}

// endLease frees an address: it ends its lease or its quarantine.
func (a *API) endLease(w http.ResponseWriter, r *http.Request) error {
	addr, err := netip.ParseAddr(r.PathValue("address"))
	if err != nil {
		return answer.BadRequest("%q is not an IP address", r.PathValue("address"))
	}
	end := a.EndLease
	if route.IsDryRun(r) {
		end = a.CheckLease
	}
	if err := end(addr, client(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// EndLease frees an address for a client: it ends its lease or its quarantine.
func (a *API) EndLease(addr netip.Addr, by auth.Client) error {
	if err := a.CheckLease(addr, by); err != nil {
		return err
	}
	was := a.lease(addr)
	if !a.Leases.End(addr, a.Now()) {
		return noLease(addr)
	}
	a.record(by, "end the lease of "+addr.String(), was.Node, audit.Between(was, nil)...)
	a.Log.Info("lease ended", "address", addr, "mac", was.MAC, "node", was.Node, "pool", was.Pool, "declined", was.Declined, "client", by.Address)
	return nil
}

// CheckLease returns an error if an address is neither leased nor in quarantine, or if the
// client must not free it.
func (a *API) CheckLease(addr netip.Addr, by auth.Client) error {
	was := a.lease(addr)
	if !was.Address.IsValid() {
		return noLease(addr)
	}
	if err := by.May(was.Pool); err != nil {
		return err
	}
	if s := was.State(a.Now()); s != pools.LeaseActive && s != pools.LeaseDeclined {
		return noLease(addr)
	}
	return nil
}

func noLease(addr netip.Addr) error {
	return answer.NotFound("no lease of %s is in force, and it is not in quarantine", addr)
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
