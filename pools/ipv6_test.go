package pools_test

import (
	"net/netip"
	"testing"

	"drover/pools"
)

// TestSLAAC: which nodes make an IPv6 address themselves, and which one.
func TestSLAAC(t *testing.T) {
	prefix := netip.MustParsePrefix
	mac := pools.MAC{0x52, 0x54, 0, 0x99, 0, 1}
	hall := pools.Subnet{CIDR: prefix("fd00:28::/64"), Network: "hall", SLAAC: true}
	yard := pools.Subnet{CIDR: prefix("fd00:29::/64"), Network: "yard", SLAAC: true}
	hall4 := pools.Subnet{CIDR: prefix("10.28.0.0/16"), Network: "hall"}
	other4 := pools.Subnet{CIDR: prefix("10.30.0.0/16")}
	macs := []pools.MAC{mac}
	for _, tt := range []struct {
		name    string
		subnets []pools.Subnet
		node    pools.Node
		want    string // an address; "": none
	}{
		{"the only subnet with slaac", []pools.Subnet{other4, hall}, pools.Node{MACs: macs}, "fd00:28::5054:ff:fe99:1"},
		{"one of two", []pools.Subnet{hall, yard}, pools.Node{MACs: macs}, ""},
		{"by the network of its IPv4 address", []pools.Subnet{yard, hall4, hall}, pools.Node{MACs: macs, IP: netip.MustParseAddr("10.28.0.9")}, "fd00:28::5054:ff:fe99:1"},
		{"another network", []pools.Subnet{hall4, other4, hall}, pools.Node{MACs: macs, IP: netip.MustParseAddr("10.30.0.9")}, ""},
		{"it has an address", []pools.Subnet{hall}, pools.Node{MACs: macs, IP6: netip.MustParseAddr("fd00:28::7")}, ""},
		{"it has no MAC", []pools.Subnet{hall}, pools.Node{}, ""},
		{"no subnet has it", []pools.Subnet{hall4}, pools.Node{MACs: macs}, ""},
	} {
		got := ""
		if p := (&pools.Config{Subnets: tt.subnets}).SLAAC(&tt.node); p.IsValid() {
			got = pools.EUI64(p, mac).String()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
