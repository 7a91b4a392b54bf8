package dhcp_test

import (
	"fmt"
	"net/netip"
	"time"

	"drover/dhcp"
	"drover/dhcp/bootprogram"
	"drover/e2e/dhcptest"
	"drover/pools"
)

// A machine with UEFI firmware is switched on. It gets an offer of its address
// and its loader.
func ExampleResponder_ReplyTo() {
	r := dhcp.Responder{Farm: dhcptest.Farm{}, Address: netip.MustParseAddr("10.28.0.2")}
	discover := bootprogram.Discover{MAC: dhcptest.Web1, Firmware: pools.UEFIx64}
	_, x := r.ReplyTo(discover.Packet().ToBytes(), time.Now())
	fmt.Println(x.Type, "→", x.Reply, x.Address, x.Plan.Boot.File)

	discover.MAC = dhcptest.Foreign
	reply, x := r.ReplyTo(discover.Packet().ToBytes(), time.Now())
	fmt.Println(x.Type, "→", len(reply), "bytes:", x.Why)
	// Output:
	// DISCOVER → OFFER 10.28.36.1 snponly.efi
	// DISCOVER → 0 bytes: no node has MAC 0a:00:00:00:00:01
}
