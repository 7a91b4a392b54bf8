package state_test

import (
	"fmt"
	"os"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

// A machine of a catch-all pool gets an address. It is acknowledged once it is
// durable.
func ExampleLeases() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store, err := state.Open(dir, state.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()

	plan := &resolve.Plan{
		MAC: pools.MAC{0x52, 0x54, 0, 0, 0, 1}, Node: "node-525400000001", Pool: "catchall",
		Range: pools.Range{First: addr(1), Last: addr(9)}, Lease: pools.Duration(time.Hour),
	}
	offered, _, err := store.Leases.Offer(plan, addr(5), epoch) // it asks for 10.0.0.5
	if err != nil {
		panic(err)
	}
	wait, err := store.Leases.Commit(plan, offered, epoch)
	if err == nil {
		err = wait()
	}
	if err != nil {
		panic(err)
	}
	lease, ok := store.Leases.At(offered)
	fmt.Println(lease.Address, lease.MAC, ok)
	// Output: 10.0.0.5 52:54:00:00:00:01 true
}
