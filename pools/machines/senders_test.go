package machines_test

import (
	"net/netip"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// TestSenders has what package dhcp asks about the sender of a packet.
func TestSenders(t *testing.T) {
	d, leases := newDirectory()
	for i := range leases.all {
		leases.all[i].Expires = time.Now().Add(time.Hour)
	}
	for _, tt := range []struct {
		mac             pools.MAC
		declared, known bool
	}{
		{mac(1), true, true},
		{mac(3), true, true}, // ignored, but a machine
		{mac(9), false, true},
		{mac(10), false, false},
	} {
		if declared, known := d.Declares(tt.mac), d.Known(tt.mac); declared != tt.declared || known != tt.known {
			t.Errorf("%s: got declared %t, known %t", tt.mac, declared, known)
		}
	}
	leases.all[1].Released = true
	if d.Known(mac(9)) {
		t.Error("a machine that released its lease is still known")
	}
	if got := d.Leased(mac(10)); got.IsValid() {
		t.Errorf("a machine without a lease has leased %s", got)
	}
	leases.all = nil
	if d.Known(mac(9)) {
		t.Error("a machine without a lease is known")
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
