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

func ExampleParse_dHCPv6() {
	v, _, err := option.Parse("option6:bootfile-param", []string{"quiet", "a b"})
	fmt.Printf("%d %s %q %v\n", v.Code6, v.Name, v.Data, err)
	_, hint, err := option.Parse("option6:59", []string{"tftp://x/y"})
	fmt.Printf("%v (%s)\n", err, hint)
	_, _, err = option.Parse("option6:dns-server", []string{"10.28.0.1"})
	fmt.Println(err)
	fmt.Println(option.Field("option6:ntp-server"), option.Field("ntp-server"))
	// Output:
	// 60 bootfile-param "\x00\x05quiet\x00\x03a b" <nil>
	// DHCP option option6:59 is not yours to set (it is the loader for the node's firmware, see loaders)
	// DHCP option option6:dns-server: "10.28.0.1" is not an IPv6 address
	// dhcpOptions.option6:56 dhcpOptions.42
}
