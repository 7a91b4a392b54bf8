package bootprogram_test

import (
	"fmt"
	"testing"

	"drover/dhcp/bootprogram"
	"drover/dhcp/wire"
	"drover/e2e/dhcptest"
	"drover/pools"
)

// What an operating system sends, as text.
func ExampleDiscover() {
	discover := bootprogram.Discover{MAC: dhcptest.Web1}
	options, err := wire.Describe(discover.Packet().ToBytes())
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

func TestDiscoverSays(t *testing.T) {
	d := bootprogram.Discover{MAC: dhcptest.Web1, Firmware: pools.BIOS, Class: "vendor", UserClass: "user", ClientID: "\x00id"}
	o := d.Packet().Options
	for code, want := range map[uint8]string{60: "vendor", 77: "user", 61: "\x00id"} {
		if got := string(o[code]); got != want {
			t.Errorf("option %d: got %q, want %q", code, got, want)
		}
	}
}
