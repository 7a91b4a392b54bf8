package dhcp

import (
	"errors"
	"net/netip"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// Resolver finds the plan of a machine. Its methods are called concurrently and
// must not block.
type Resolver interface {
	// Resolve returns the plan of a machine, or nil when the machine gets
	// silence. It is called once for each packet.
	Resolve(q resolve.Query) *resolve.Plan
	// WhyNot returns, as text, the reason why Resolve returned nil.
	WhyNot(q resolve.Query) string
}

// Leases stores the addresses that the config does not give: addresses from the
// range of a catch-all pool, addresses of nodes that are not known by their
// MAC, and addresses that a machine still uses after the config changed. The
// methods are called concurrently and must not wait for the disk. An error that
// wraps [pools.ErrRefused] means that the machine cannot have the address. Any
// other error means that the store does not work.
type Leases interface {
	Giver
	Taker
}

// Giver gives addresses to machines.
type Giver interface {
	// Offer returns the address that the machine p.MAC holds or would get: its
	// lease, else preferred when that is in the range and free, else another
	// free address. A machine gets the same address each time. fresh reports
	// whether the machine neither had the address before nor was offered it a
	// moment ago.
	Offer(p *resolve.Plan, preferred netip.Addr, now time.Time) (addr netip.Addr, fresh bool, err error)
	// Commit gives addr to the machine for p.Lease from now on. The lease is in
	// force at once. It is durable when wait returns nil, and is acknowledged
	// only then. Waits return in the order of the Commits.
	Commit(p *resolve.Plan, addr netip.Addr, now time.Time) (wait func() error, err error)
	// Holds returns the active lease of a machine.
	Holds(mac pools.MAC, now time.Time) (netip.Addr, bool)
}

// Taker takes addresses back.
type Taker interface {
	// Leave ends the lease of a machine that boots, unless that lease is of the
	// address keep.
	Leave(mac pools.MAC, keep netip.Addr, now time.Time)
	// Release frees addr when the machine of p holds it. Otherwise it does nothing. It returns
	// false when the lease has another client identifier than the query of p.
	Release(p *resolve.Plan, addr netip.Addr, now time.Time) bool
	// Decline quarantines addr for a while, because an unknown machine uses it. Offer gives it,
	// as fresh, when nothing else is left.
	// When the machine of p neither holds addr, with the same client identifier if both have one,
	// nor was offered it, Decline does nothing and returns false.
	Decline(p *resolve.Plan, addr netip.Addr, why string, now time.Time) bool
}

// NoLeases is a store that gives no address.
type NoLeases struct{}

// Offer returns an error.
func (NoLeases) Offer(*resolve.Plan, netip.Addr, time.Time) (netip.Addr, bool, error) {
	return netip.Addr{}, false, errors.New("no lease store is set")
}

// Commit returns an error.
func (NoLeases) Commit(*resolve.Plan, netip.Addr, time.Time) (func() error, error) {
	return nil, errors.New("no lease store is set")
}

// Holds finds no lease.
func (NoLeases) Holds(pools.MAC, time.Time) (a netip.Addr, ok bool) { return a, false }

// Leave does nothing.
func (NoLeases) Leave(pools.MAC, netip.Addr, time.Time) {}

// Release returns true.
func (NoLeases) Release(*resolve.Plan, netip.Addr, time.Time) bool { return true }

// Decline returns false.
func (NoLeases) Decline(*resolve.Plan, netip.Addr, string, time.Time) bool { return false }
