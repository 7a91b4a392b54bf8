package dhcp

import (
	"net/netip"
	"time"

	"drover/pools"
)

// Resolver answers the one question. [config.Live] is one. Its methods are
// called concurrently and must not block.
type Resolver interface {
	// Resolve returns the plan of a machine, or nil when it gets silence. It is
	// asked once for every packet.
	Resolve(q pools.Query) *pools.Plan
	// WhyNot tells in words why Resolve returned nil.
	WhyNot(q pools.Query) string
}

// Leases keeps the addresses that machines have and the config does not give
// them: those leased from the range of a catch-all pool, those of nodes that
// are not known by their MAC, and those that a machine still runs on after the
// config changed. The methods are called concurrently. Errors that wrap
// [pools.ErrRefused] say that the machine cannot have the address, others that
// the store does not work.
type Leases interface {
	Giver
	Taker
}

// Giver gives addresses.
type Giver interface {
	// Offer returns the address that the machine p.MAC holds or would get: its
	// lease, else want when that is in the range and free, else a free one. It
	// gives one machine the same address each time. It is fresh when the
	// machine did not have it before, nor was offered it a moment ago.
	Offer(p *pools.Plan, want netip.Addr, now time.Time) (addr netip.Addr, fresh bool, err error)
	// Commit gives addr to the machine for p.Lease from now on. That holds at
	// once; it is durable when wait returns nil, and only then is it
	// acknowledged. Waits return in the order of the Commits.
	Commit(p *pools.Plan, addr netip.Addr, now time.Time) (wait func() error, err error)
	// Holds returns the active lease of a machine.
	Holds(mac pools.MAC, now time.Time) (netip.Addr, bool)
}

// Taker takes addresses back.
type Taker interface {
	// Leave ends the lease of a machine that boots anew and will get another
	// address.
	Leave(mac pools.MAC, now time.Time)
	// Release frees addr when mac holds it, and else does nothing.
	Release(mac pools.MAC, addr netip.Addr, now time.Time)
	// Decline keeps addr from everybody for a while, because somebody uses it
	// whom nobody knows. It returns false, and does nothing, when mac neither
	// holds addr nor was offered it.
	Decline(mac pools.MAC, addr netip.Addr, why string, now time.Time) bool
}
