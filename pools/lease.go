package pools

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// ErrRefused is the error of a lease store for an address that a machine cannot have.
// DHCP answers it with a NAK. It answers other errors, such as those of a broken disk,
// with silence.
var ErrRefused = errors.New("address refused")

// Lease is an address that a machine uses or has used. An expired lease is kept until
// another machine needs the address, so that the machine gets the same one again.
//
// Machines of a catch-all pool have a lease. So do nodes that are not identified by
// their MAC, and nodes that still use an address which the config no longer gives
// them.
type Lease struct {
	Address  netip.Addr `json:"address"`
	MAC      MAC        `json:"mac"` // of the machine that uses the address, or declined it
	Node     string     `json:"node"`
	Pool     string     `json:"pool"`
	Expires  time.Time  `json:"expires"`
	Released bool       `json:"released,omitempty"` // the machine gave it back before it expired
	Declined string     `json:"declined,omitempty"` // reason why the address is not leased before Expires: an unknown host uses it
}

// LeaseState is the state of a [Lease] at a moment.
type LeaseState string

// The states of a lease.
const (
	LeaseActive   LeaseState = "active"
	LeaseExpired  LeaseState = "expired"
	LeaseReleased LeaseState = "released"
	LeaseDeclined LeaseState = "declined"
)

// LeaseStates returns the names of all states.
func LeaseStates() []string {
	return []string{string(LeaseActive), string(LeaseExpired), string(LeaseReleased), string(LeaseDeclined)}
}

// LeaseInfo is a lease as the REST API shows it.
type LeaseInfo struct {
	Lease
	State LeaseState `json:"state"`
}

// State returns the state of the lease at now. A declined lease is expired after its
// end.
func (l Lease) State(now time.Time) LeaseState {
	switch {
	case !now.Before(l.Expires) && !l.Released:
		return LeaseExpired
	case l.Released:
		return LeaseReleased
	case l.Declined != "":
		return LeaseDeclined
	}
	return LeaseActive
}

// Active reports whether a machine holds the lease at now.
func (l Lease) Active(now time.Time) bool { return l.State(now) == LeaseActive }

// Of reports whether a node may use the lease as its own: one of its MACs has it, or the
// machine that DHCP identified as this node.
func (l Lease) Of(n *Node) bool {
	return slices.Contains(n.MACs, l.MAC) || len(n.MACs) == 0 && l.Node == n.Name
}

// LeasedError is the error of a node whose address another machine leases. Both would use
// it at the same time.
type LeasedError struct {
	Node  string
	Lease Lease
}

func (e *LeasedError) Error() string {
	l := e.Lease
	return fmt.Sprintf("node %q: its address %s is leased to %s (%s) until %s: give it another address, or end the lease once that machine is off (drover lease release %s)",
		e.Node, l.Address, l.MAC, l.Node, l.Expires.UTC().Format(time.DateTime+" UTC"), l.Address)
}

// Unknown is a machine that has requested an address and that no node declares.
type Unknown struct {
	MAC      MAC        `json:"mac"`
	First    time.Time  `json:"first"` // when it was first seen
	Last     time.Time  `json:"last"`
	Count    int        `json:"count"`              // how many DISCOVERs
	Pool     string     `json:"pool,omitempty"`     // the catch-all pool that takes it; empty: it got no answer
	Address  netip.Addr `json:"address,omitzero"`   // the last one that it was offered
	Firmware Firmware   `json:"firmware,omitempty"` // empty for an operating system
	Class    string     `json:"class,omitempty"`    // option 60, printable
	Relay    netip.Addr `json:"relay,omitzero"`     // giaddr of the relay agent
	Circuit  string     `json:"circuit,omitempty"`  // option 82.1, printable
	Remote   string     `json:"remote,omitempty"`   // option 82.2, printable

	// Retired is the name of the retired node that has the MAC: what the machine was, before the
	// config lost it. Only a running server sets it.
	Retired     string `json:"retired,omitempty"`
	RetiredPool string `json:"retiredPool,omitempty"` // that node's

	// Inventory is the hardware, as the machine itself reported it in its last boot with
	// drover-init; nil: it did not.
	Inventory *Inventory `json:"inventory,omitempty"`
}
