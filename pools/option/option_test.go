package option_test

import (
	"fmt"

	"drover/pools/option"
)

func ExampleParse() {
	v, _, err := option.Parse("ntp-server", []string{"10.28.0.1"})
	fmt.Printf("%d %s %x %v\n", v.Code, v.Name, v.Data, err)
	_, hint, err := option.Parse("51", []string{"60"})
	fmt.Printf("%v (%s)\n", err, hint)
	// Output:
	// 42 ntp-server 0a1c0001 <nil>
	// DHCP option 51 is not yours to set (set lease in the pool or subnet)
}
