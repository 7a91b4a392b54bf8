package main

import (
	"net/netip"

	"drover/pools"
)

// Exports for the tests.
var (
	ParseOptions = parseOptions
	NewStep      = newStep
)

// Owners records which machine holds an address, and returns the error of a second one.
func Owners() func(machine int, addr string) error {
	s := &swarm{owners: owners{of: map[netip.Addr]pools.MAC{}}}
	return func(i int, addr string) error {
		return s.holds(&machine{mac: machineMAC(i)}, netip.MustParseAddr(addr))
	}
}

// Failure returns the error of a run with these failures.
func Failure(failed ...string) error {
	return (&Report{Failures: len(failed), Failed: failed}).failure()
}
