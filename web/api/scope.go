package api

import (
	"slices"
	"strings"

	"drover/pools"
	"drover/web/auth"
)

// A client that is limited to pools sees what belongs to them: their machines, leases, jobs and
// boots. It sees neither what belongs to other pools, nor how many there are.

// seen returns what a client may see of a list whose elements are each of a pool.
func seen[T any](by auth.Client, all []T, pool func(*T) string) []T {
	if !by.Limited() {
		return all
	}
	own := []T{}
	for i := range all {
		if by.May(pool(&all[i])) == nil {
			own = append(own, all[i])
		}
	}
	return own
}

// sees is for elements one by one, as [seen].
func sees[T any](by auth.Client, pool func(*T) string) func(*T) bool {
	return func(v *T) bool { return by.May(pool(v)) == nil }
}

// both reports whether an element fits two filters.
func both[T any](a, b func(*T) bool) func(*T) bool { return func(v *T) bool { return a(v) && b(v) } }

// LeasesOf returns the leases and quarantines that a client may see.
func (a *API) LeasesOf(by auth.Client) []pools.Lease {
	return seen(by, a.Leases.List(), func(l *pools.Lease) string { return l.Pool })
}

// UnknownsOf returns the unknown machines that a client may see.
func (a *API) UnknownsOf(by auth.Client) []pools.Unknown {
	all := a.Unknowns.List()
	if !by.Limited() {
		return all
	}
	may := seesUnknown(by)
	return slices.DeleteFunc(all, func(u pools.Unknown) bool { return !may(&u) })
}

// seesUnknown reports whether a client may see an unknown machine: one of its pools, or of none,
// of which it may make a node. A machine that a retired node was is that node's pool's.
func seesUnknown(by auth.Client) func(*pools.Unknown) bool {
	return func(u *pools.Unknown) bool {
		return (u.Pool == "" || by.May(u.Pool) == nil) && (u.Retired == "" || by.May(u.RetiredPool) == nil)
	}
}

// ChassisOf returns the chassis that a client may see: those that bring their nodes into its pools.
func (a *API) ChassisOf(by auth.Client) []pools.ChassisStatus {
	return seen(by, a.Hardware.Chassis(), func(c *pools.ChassisStatus) string { return c.Pool })
}

// JobsOf returns the power jobs that a client may see, with its machines alone.
func (a *API) JobsOf(by auth.Client) (all []pools.PowerJob) {
	if !by.Limited() {
		return a.Power.Jobs()
	}
	for _, job := range a.Power.Jobs() {
		if j, ok := a.jobOf(by, job); ok {
			all = append(all, j)
		}
	}
	return all
}

// jobOf returns what a client may see of a job; false: nothing.
func (a *API) jobOf(by auth.Client, job pools.PowerJob) (pools.PowerJob, bool) {
	if by.Limited() {
		farm := a.Farm.Farm()
		job.Nodes = slices.DeleteFunc(slices.Clone(job.Nodes), func(n pools.PowerNode) bool {
			node, ok := farm.Node(n.Name)
			return !ok || by.May(node.Pool) != nil
		})
	}
	return job, !by.Limited() || len(job.Nodes) > 0
}

// AuditOf returns what a client may see of the audit, the newest first: what it did itself, and
// what was done with machines of its pools.
func (a *API) AuditOf(by auth.Client) ([]pools.AuditEntry, error) {
	all, err := a.Audit.List(pools.MaxAudit)
	if err != nil || !by.Limited() {
		return all, err
	}
	own, _, _ := strings.Cut(by.String(), " from ")
	farm := a.Farm.Farm()
	return slices.DeleteFunc(slices.Clone(all), func(e pools.AuditEntry) bool {
		if who, _, _ := strings.Cut(e.Actor, " from "); by.Name != "" && who == own {
			return false
		}
		n, ok := farm.Node(e.Node)
		return !ok || by.May(n.Pool) != nil
	}), nil
}

func nodePool(n *pools.NodeInfo) string   { return n.Pool }
func leasePool(l *pools.LeaseInfo) string { return l.Pool }
