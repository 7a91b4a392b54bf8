package config_test

import (
	"fmt"

	"drover/pools/config"
)

func ExampleParse() {
	_, err := config.Parse("drover.yaml", []byte(`server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
tags: {debug: {kernelArgs: debug}}
pools:
  - name: web
    image: debian-12
    tags: [debg]
    nodes: [{name: m1, macs: ["52:54:00:12:34:56"], ip: 10.29.0.1}]
`))
	fmt.Println(err)
	// Output:
	// drover.yaml:7: pool "web": unknown tag "debg" (did you mean "debug"?)
	// drover.yaml:8: node "m1": address 10.29.0.1 is in none of the subnets (declare its network under subnets:, or mend the address)
}
