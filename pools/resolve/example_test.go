package resolve_test

import (
	"fmt"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

func ExampleFarm_Resolve() {
	farm, err := config.Parse("drover.yaml", []byte(`server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
tags: {all: {timezone: Europe/Prague}}
pools: [{name: web, image: debian-12, nodes: [{name: m1, macs: ["52:54:00:12:34:56"], ip: 10.28.0.11}]}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	mac, _ := pools.ParseMAC("5254.0012.3456")
	p := farm.Resolve(resolve.Query{MAC: mac, Firmware: pools.UEFIx64})
	fmt.Println(p.Node, p.Address, p.Image, p.Boot.File)
	fmt.Println(p.Why()["timezone"])
	// Output:
	// m1 10.28.0.11 debian-12 snponly.efi
	// drover.yaml:3 (tags.all.timezone)
}
