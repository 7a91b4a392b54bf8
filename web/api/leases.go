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
	// End frees an address that the machine with that MAC holds, or whose quarantine it
	// has caused. It returns false when there is no such lease.
	End(addr netip.Addr, mac pools.MAC, now time.Time) bool
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
		return follow(w, r, &a.watched().leases, &leaseList, sees(client(r), leasePool))
	}
	return leaseList.Answer(w, r, seen(client(r), a.allLeases(), leasePool))
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
	found, errs := a.FindLeases([]netip.Addr{addr}, client(r))
	if errs[0] == nil && !route.IsDryRun(r) {
		errs = a.EndLeases(found, client(r))
	}
	if errs[0] != nil {
		return errs[0]
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// FindLeases returns the leases and quarantines of addresses that a client may end, and an
// error for each of the others, both in the order of addrs.
func (a *API) FindLeases(addrs []netip.Addr, by auth.Client) (found []pools.Lease, errs []error) {
	all, now := a.leasesByAddress(), a.Now()
	errs = make([]error, len(addrs))
	for i, addr := range addrs {
		l, ok := all[addr]
		found = append(found, l)
		if !ok {
			errs[i] = noLease(addr)
			continue
		}
		if errs[i] = by.May(l.Pool); errs[i] != nil {
			continue
		}
		if s := l.State(now); s != pools.LeaseActive && s != pools.LeaseDeclined {
			errs[i] = noLease(addr)
		}
	}
	return found, errs
}

// EndLeases frees addresses for a client: it ends the leases and quarantines that
// [API.FindLeases] has found. One that has become that of another machine stays. It returns an
// error for each that stays, in the order of the leases.
func (a *API) EndLeases(seen []pools.Lease, by auth.Client) []error {
	addrs := make([]netip.Addr, len(seen))
	for i, l := range seen {
		addrs[i] = l.Address
	}
	found, errs := a.FindLeases(addrs, by)
	now := a.Now()
	var entries []pools.AuditEntry
	for i, l := range found {
		switch {
		case errs[i] != nil:
			continue
		case l.MAC != seen[i].MAC, !a.Leases.End(l.Address, l.MAC, now):
			errs[i] = &answer.Error{Code: http.StatusConflict, Msg: l.Address.String() + " is not leased to " + seen[i].MAC.String() + " any more"}
			continue
		}
		entries = append(entries, a.entry(by, "end the lease of "+l.Address.String(), l.Node, audit.Between(l, nil)...))
		a.Log.Info("lease ended", "address", l.Address, "mac", l.MAC, "node", l.Node, "pool", l.Pool, "declined", l.Declined, "client", by.Address)
	}
	a.recordAll(entries)
	return errs
}

func noLease(addr netip.Addr) error {
	return answer.NotFound("no lease of %s is in force, and it is not in quarantine", addr)
}

func (a *API) leasesByAddress() map[netip.Addr]pools.Lease {
	list := a.Leases.List()
	all := make(map[netip.Addr]pools.Lease, len(list))
	for _, l := range list {
		all[l.Address] = l
	}
	return all
}
