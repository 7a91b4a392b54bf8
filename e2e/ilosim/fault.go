package ilosim

import (
	"fmt"
	"slices"
)

// Fault is a failure of a real chassis or iLO.
type Fault string

// The faults. Each is switched on by [Chassis.Inject].
const (
	Silent        Fault = "silent"         // a connection is accepted, and nothing is sent
	SessionLimit  Fault = "session-limit"  // a connection is closed as soon as it is accepted
	StallLogin    Fault = "stall-login"    // the login is never answered
	Locked        Fault = "locked"         // commands answer that the account is locked
	NoRights      Fault = "no-rights"      // the user may log in and nothing else
	NoExec        Fault = "no-exec"        // exec is refused, a shell is accepted
	ExecCloses    Fault = "exec-closes"    // exec ends the connection
	ExecEmpty     Fault = "exec-empty"     // exec has no output
	NoShell       Fault = "no-shell"       // neither a terminal nor a shell
	StallMidTable Fault = "stall-midtable" // half of a table, and then nothing
	CutMidTable   Fault = "cut-midtable"   // half of a table, and then the connection ends
	UnknownList   Fault = "unknown-list"   // "show node list" is an invalid command
	Garbage       Fault = "garbage"        // ten megabytes of output

	SoftOffIgnored  Fault = "soft-off-ignored" // a hung system: off without force does nothing
	OffIgnored      Fault = "off-ignored"
	OnIgnored       Fault = "on-ignored"
	BootOnceLost    Fault = "bootonce-lost" // switching off forgets it
	BootOnceIgnored Fault = "bootonce-ignored"

	NoSummary    Fault = "no-summary"     // REST: 404 on SystemsSummary
	Unauthorized Fault = "unauthorized"   // REST: 401 for every login
	Forbidden    Fault = "forbidden"      // REST: 403
	ServerError  Fault = "server-error"   // REST: 500
	Busy         Fault = "busy"           // REST: 503 with Retry-After
	TokenExpires Fault = "token-expires"  // REST: session tokens expire at once
	CyclicLinks  Fault = "cyclic-links"   // REST: a collection that links to itself
	NullMACs     Fault = "null-macs"      // REST: MACs are null and ""
	OnlyUpperPXE Fault = "only-upper-pxe" // REST: 400 for "Pxe"; "PXE" is accepted
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

// Always makes [Chassis.Inject] cause a fault without limit.
const Always = -1

// Inject causes a fault that many times.
func (c *Chassis) Inject(f Fault, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults == nil {
		c.faults = map[Fault]int{}
	}
	c.faults[f] = times
}

// Clear removes a fault.
func (c *Chassis) Clear(f Fault) { c.Inject(f, 0) }

// fault reports whether f occurs this time, and counts it; c.mu is held.
func (c *Chassis) fault(f Fault) bool {
	switch n := c.faults[f]; {
	case n == 0:
		return false
	case n > 0:
		c.faults[f]--
	}
	return true
}

// happens is fault for callers that do not hold c.mu.
func (c *Chassis) happens(f Fault) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault(f)
}
