package dhcp

import (
	"errors"
	"net/netip"
	"time"

	"drover/pools"
)

// Resolver finds the plan of a machine. Its methods are called concurrently and
// must not block.
type Resolver interface {
	// Resolve returns the plan of a machine, or nil when it gets silence. It is
	// asked once for every packet.
	Resolve(q pools.Query) *pools.Plan
	// WhyNot returns the reason, as text, for which Resolve returned nil.
	WhyNot(q pools.Query) string
}

// Leases stores the addresses that the config does not give: those from the range
// of a catch-all pool, those of nodes that are not known by their MAC, and those
// that a machine still runs on after the config changed. The methods are called
// concurrently and must not wait for the disk. An error that wraps
// [pools.ErrRefused] means that the machine cannot have the address, any other
// that the store does not work.
type Leases interface {
	Giver
	Taker
}

// Giver gives addresses to machines.
type Giver interface {
	// Offer returns the address that the machine p.MAC holds or would get: its
	// lease, else preferred when that is in the range and free, else a free one.
	// A machine gets the same address each time. The address is fresh when the
	// machine neither had it before nor was offered it a moment ago.
	Offer(p *pools.Plan, preferred netip.Addr, now time.Time) (addr netip.Addr, fresh bool, err error)
	// Commit gives addr to the machine for p.Lease from now on. The lease is in
	// force at once, and durable when wait returns nil: only then is it
	// acknowledged. Waits return in the order of the Commits.
	Commit(p *pools.Plan, addr netip.Addr, now time.Time) (wait func() error, err error)
	// Holds returns the active lease of a machine.
	Holds(mac pools.MAC, now time.Time) (netip.Addr, bool)
}

// Taker takes addresses back.
type Taker interface {
	// Leave ends the lease of a machine that boots, unless it is of the address
	// keep.
	Leave(mac pools.MAC, keep netip.Addr, now time.Time)
	// Release frees addr when mac holds it, and else does nothing.
	Release(mac pools.MAC, addr netip.Addr, now time.Time)
	// Decline quarantines addr for a while, because an unknown machine uses it.
	// It returns false, and does nothing, when mac neither holds addr nor was
	// offered it.
	Decline(mac pools.MAC, addr netip.Addr, why string, now time.Time) bool
}

// noLeases is a store that gives no address.
type noLeases struct{}

// Offer has no address.
func (noLeases) Offer(*pools.Plan, netip.Addr, time.Time) (netip.Addr, bool, error) {
	return netip.Addr{}, false, errors.New("no lease store is set")
}

// Commit stores nothing.
func (noLeases) Commit(*pools.Plan, netip.Addr, time.Time) (func() error, error) {
	return nil, errors.New("no lease store is set")
}

// Holds finds no lease.
func (noLeases) Holds(pools.MAC, time.Time) (a netip.Addr, ok bool) { return a, false }

// Leave does nothing.
func (noLeases) Leave(pools.MAC, netip.Addr, time.Time) {}

// Release does nothing.
func (noLeases) Release(pools.MAC, netip.Addr, time.Time) {}

// Decline refuses.
func (noLeases) Decline(pools.MAC, netip.Addr, string, time.Time) bool { return false }
