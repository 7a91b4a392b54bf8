package pools

import (
	"errors"
	"net/netip"
	"time"
)

// ErrRefused is what a lease store wraps when a machine cannot have an address,
// as opposed to a disk that does not work: DHCP answers the first with a NAK,
// and the other with silence.
var ErrRefused = errors.New("address refused")

// Lease is an address that a machine has, or had: an expired one is kept, so
// that the machine gets the same address again, until another machine needs it.
//
// Machines of a catch-all pool have one. So do nodes that are not known by
// their MAC, and those that still use an address that the config gives them no
// more.
type Lease struct {
	Address  netip.Addr `json:"address"`
	MAC      MAC        `json:"mac"` // who has it, or who declined it
	Node     string     `json:"node"`
	Pool     string     `json:"pool"`
	Expires  time.Time  `json:"expires"`
	Released bool       `json:"released,omitempty"` // given back before it expired
	Declined string     `json:"declined,omitempty"` // why nobody gets the address before Expires: somebody uses it whom drover does not know
}

// LeaseState says in a word what a [Lease] is at some time.
type LeaseState string

// The states of a lease.
const (
	LeaseActive   LeaseState = "active"
	LeaseExpired  LeaseState = "expired"
	LeaseReleased LeaseState = "released"
	LeaseDeclined LeaseState = "declined"
)

// State tells what the lease is at that time. A declined one whose time is over
// is expired.
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

// Active tells whether a machine holds the lease at that time.
func (l Lease) Active(now time.Time) bool { return l.State(now) == LeaseActive }

// Unknown is a machine that asked for an address and that no node declares.
type Unknown struct {
	MAC      MAC        `json:"mac"`
	First    time.Time  `json:"first"` // when it was first seen
	Last     time.Time  `json:"last"`
	Count    int        `json:"count"`              // how many DISCOVERs
	Pool     string     `json:"pool,omitempty"`     // the catch-all pool that it landed in; empty: it got silence
	Address  netip.Addr `json:"address,omitzero"`   // what it was offered last
	Firmware Firmware   `json:"firmware,omitempty"` // empty for an operating system
	Class    string     `json:"class,omitempty"`    // option 60, printable
	Relay    netip.Addr `json:"relay,omitzero"`     // giaddr of the relay agent
	Circuit  string     `json:"circuit,omitempty"`  // option 82.1, printable
	Remote   string     `json:"remote,omitempty"`   // option 82.2, printable
}
