package dhcp_test

import (
	"fmt"
	"net/netip"
	"time"

	"drover/dhcp"
	"drover/e2e/dhcptest"
	"drover/pools"
)

// A machine with UEFI firmware is switched on. It gets an offer of its address
// and its loader.
func ExampleResponder_ReplyTo() {
	r := dhcp.Responder{Farm: dhcptest.Farm{}, Address: netip.MustParseAddr("10.28.0.2")}
	discover := dhcp.Discover{MAC: dhcptest.Web1, Firmware: pools.UEFIx64}
	_, x := r.ReplyTo(discover.Packet().ToBytes(), time.Now())
	fmt.Println(x.Type, "→", x.Reply, x.Address, x.Plan.Boot.File)

	discover.MAC = dhcptest.Foreign
	reply, x := r.ReplyTo(discover.Packet().ToBytes(), time.Now())
	fmt.Println(x.Type, "→", len(reply), "bytes:", x.Why)
	// Output:
	// DISCOVER → OFFER 10.28.36.1 snponly.efi
	// DISCOVER → 0 bytes: no node has MAC 0a:00:00:00:00:01
}

// The options of a packet, as text.
func ExampleDescribe() {
	discover := dhcp.Discover{MAC: dhcptest.Web1}
	options, err := dhcp.Describe(discover.Packet().ToBytes())
	if err != nil {
		panic(err)
	}
	for _, o := range options {
		fmt.Println(o.Code, o.Name, "=", o.Value)
	}
	// Output:
	// 53 message type = DISCOVER
	// 55 asked for = 1 3 6 12 15 33 42 120 121
	// 57 largest message = 1472
}
