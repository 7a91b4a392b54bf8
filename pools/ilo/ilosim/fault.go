package ilosim

import (
	"fmt"
	"slices"
)

// Fault is something that goes wrong.
type Fault string

// The faults. Each is switched on by [Chassis.Break].
const (
	Silent        Fault = "silent"         // a connection is accepted, and nothing is said
	SessionLimit  Fault = "session-limit"  // a connection is closed as soon as it is accepted
	StallLogin    Fault = "stall-login"    // the login is never answered
	Locked        Fault = "locked"         // the account is: commands say so
	NoRights      Fault = "no-rights"      // the user may log in and nothing else
	NoExec        Fault = "no-exec"        // exec is refused, a shell is not
	ExecCloses    Fault = "exec-closes"    // exec ends the connection
	ExecEmpty     Fault = "exec-empty"     // exec says nothing
	NoShell       Fault = "no-shell"       // neither a terminal nor a shell
	StallMidTable Fault = "stall-midtable" // half of a table, and then nothing
	CutMidTable   Fault = "cut-midtable"   // half of a table, and then the connection ends
	UnknownList   Fault = "unknown-list"   // "show node list" is an invalid command
	Garbage       Fault = "garbage"        // ten megabytes of it

	SoftOffIgnored  Fault = "soft-off-ignored" // a hung system: off without force does nothing
	OffIgnored      Fault = "off-ignored"
	OnIgnored       Fault = "on-ignored"
	BootOnceLost    Fault = "bootonce-lost" // switching off forgets it
	BootOnceIgnored Fault = "bootonce-ignored"

	NoSummary    Fault = "no-summary"     // REST: 404 on SystemsSummary
	Unauthorized Fault = "unauthorized"   // REST: 401, whoever asks
	Forbidden    Fault = "forbidden"      // REST: 403
	ServerError  Fault = "server-error"   // REST: 500
	Busy         Fault = "busy"           // REST: 503 with Retry-After
	TokenExpires Fault = "token-expires"  // REST: a session token is not known any more
	CyclicLinks  Fault = "cyclic-links"   // REST: a collection that links to itself
	NullMACs     Fault = "null-macs"      // REST: MACs are null and ""
	OnlyUpperPXE Fault = "only-upper-pxe" // REST: 400 for "Pxe", while "PXE" is taken
	NoPower      Fault = "no-power"       // REST: a node has no power state
)

// All returns all faults.
func All() []Fault {
	return []Fault{
		Silent, SessionLimit, StallLogin, Locked, NoRights, NoExec, ExecCloses, ExecEmpty, NoShell,
		StallMidTable, CutMidTable, UnknownList, Garbage,
		SoftOffIgnored, OffIgnored, OnIgnored, BootOnceLost, BootOnceIgnored,
		NoSummary, Unauthorized, Forbidden, ServerError, Busy, TokenExpires, CyclicLinks, NullMACs, OnlyUpperPXE, NoPower,
	}
}

// ParseFault reads a fault by its name.
func ParseFault(s string) (Fault, error) {
	if f := Fault(s); slices.Contains(All(), f) {
		return f, nil
	}
	return "", fmt.Errorf("unknown fault %q (one of %q)", s, All())
}

// Always is how often [Chassis.Break] lets a fault happen without end.
const Always = -1

// Break lets a fault happen that many times.
func (c *Chassis) Break(f Fault, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults == nil {
		c.faults = map[Fault]int{}
	}
	c.faults[f] = times
}

// Mend ends a fault.
func (c *Chassis) Mend(f Fault) { c.Break(f, 0) }

// fault tells whether f happens this time; c.mu is held.
func (c *Chassis) fault(f Fault) bool {
	switch n := c.faults[f]; {
	case n == 0:
		return false
	case n > 0:
		c.faults[f]--
	}
	return true
}

// happens is fault for who does not hold c.mu.
func (c *Chassis) happens(f Fault) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault(f)
}
