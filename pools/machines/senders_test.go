package machines_test

import (
	"fmt"
	"net/netip"
	"testing"

	"drover/pools"
	"drover/pools/resolve"
)

// TestSenders has what package dhcp asks about the sender of a packet.
func TestSenders(t *testing.T) {
	d, leases := newDirectory()
	for _, tt := range []struct {
		mac      pools.MAC
		declared bool
		leased   string
	}{
		{mac(1), true, "[]"},
		{mac(3), true, "[]"}, // ignored, but a machine
		{mac(9), false, "[10.0.2.9]"},
		{mac(10), false, "[]"},
	} {
		if declared, leased := d.Declares(tt.mac), fmt.Sprint(d.Leased(tt.mac)); declared != tt.declared || leased != tt.leased {
			t.Errorf("%s: got declared %t, leased %s", tt.mac, declared, leased)
		}
	}
	d.Leases6 = leases
	if got := d.Leased(mac(9)); len(got) != 2 {
		t.Errorf("got the leases %v, want one of each family", got)
	}
	if !d.InSubnet(addr("10.0.3.4")) || d.InSubnet(addr("10.1.0.1")) || d.ListsRelay(addr("10.99.0.1")) {
		t.Error("got other networks than those declared")
	}
	d.Farm = live{resolve.NewFarm(resolve.Checked{Config: pools.Config{Subnets: []pools.Subnet{
		{CIDR: netip.MustParsePrefix("10.0.0.0/16"), Relays: []netip.Addr{addr("10.99.0.1")}},
	}}})}
	if !d.ListsRelay(addr("10.99.0.1")) || d.InSubnet(addr("10.99.0.1")) {
		t.Error("a listed relay agent is not found, or is one of the subnet")
	}
	d.Farm = live{resolve.NewFarm(resolve.Checked{Config: pools.Config{Subnets: []pools.Subnet{
		{CIDR: netip.MustParsePrefix("10.0.0.0/16"), Network: "hall", Relays: []netip.Addr{addr("10.99.0.1")}},
		{CIDR: netip.MustParsePrefix("10.1.0.0/16"), Network: "hall"},
		{CIDR: netip.MustParsePrefix("10.2.0.0/16")},
	}}})}
	for _, tt := range []struct {
		link, addr string
		want       bool
	}{
		{"10.0.0.1", "10.0.9.0", true},
		{"10.0.0.1", "10.1.0.0", true},
		{"10.99.0.1", "10.1.0.0", true},
		{"10.0.0.1", "10.2.0.0", false},
		{"10.2.0.1", "10.0.0.0", false},
		{"10.0.0.1", "10.3.0.0", false},
		{"10.3.0.1", "10.0.0.0", false},
		{"10.3.0.1", "10.3.0.0", false},
	} {
		if got := d.OneNetwork(addr(tt.link), addr(tt.addr)); got != tt.want {
			t.Errorf("%s and %s are of one network: got %t", tt.link, tt.addr, got)
		}
	}
	d.Farm = live{resolve.NewFarm(resolve.Checked{Local: []resolve.Local{{Interface: "eth1", Prefix: netip.MustParsePrefix("10.7.0.1/16")}}})}
	if !d.InSubnet(addr("10.7.3.4")) || d.InSubnet(addr("10.0.3.4")) {
		t.Error("without subnets the networks of the server count")
	}
}
