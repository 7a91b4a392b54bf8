package boots_test

import (
	"fmt"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// The boot of a machine without a cluster, from its first DISCOVER to its end.
func ExampleTable() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	table := boots.NewTable(newDisk(), func() time.Time { return now })
	table.NeedDiscover = true
	plan := &resolve.Plan{MAC: pools.MAC{0x52, 0x54, 0, 0, 0, 1}, Node: "m1", Pool: "compute", Image: "debian-12"}

	_, err := table.Issue(plan)
	fmt.Println(err)

	table.Discover(plan, now)
	nonce, err := table.Issue(plan)
	fmt.Println(len(nonce), err)
	fmt.Println(table.Claim(plan.MAC, nonce, []byte("the node's key")))
	fmt.Println(table.Claim(plan.MAC, nonce, []byte("another key")))

	now = now.Add(30 * time.Second)
	fmt.Println(table.Step(plan.MAC, nonce, boots.Event{Step: boots.StepOnline}))
	record, _ := table.Current(plan.MAC)
	last, _ := record.Furthest()
	fmt.Println(last.Step, last.Time.Sub(record.Started), record.Ended())
	// Output:
	// 52:54:00:00:00:01: the firmware of this machine has sent no DISCOVER since its last boot
	// 64 <nil>
	// <nil>
	// this boot already belongs to another key
	// <nil>
	// online 30s true
}
