package moonshot_test

import (
	"fmt"

	"drover/hardware/moonshot"
)

func ExampleParse() {
	inv, err := moonshot.Parse(`hpiLO-> show node macaddr all
Slot ID    NIC 1 (Switch A)  NIC 2 (Switch B)
---- ----- ----------------- -----------------
  1  c1n1  94:57:a5:00:01:01 94:57:a5:00:01:02
  2  c2n1  94:57:a5:00:02:1  N/A
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range inv.Nodes {
		for _, nic := range n.NICs {
			fmt.Println(n.Slot, nic.Number, nic.MAC)
		}
	}
	fmt.Println(inv.Problems[0])
	// Output:
	// c1n1 1 94:57:a5:00:01:01
	// c1n1 2 94:57:a5:00:01:02
	// line 5: c2n1: NIC 1: "94:57:a5:00:02:1" is not a MAC address (write six pairs such as 52:54:00:12:34:56)
}
