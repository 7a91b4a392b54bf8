package migrate_test

import (
	"fmt"
	"slices"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/migrate/dhcpd"
)

// TestDhcpdNested: blocks of dhcpd are read wherever they stand, with what those around them say.
func TestDhcpdNested(t *testing.T) {
	r, c := importtest.Text(t, dhcpd.Read, `group outer { option ntp-servers 10.28.0.3; option dhcp6.name-servers fd00:28::53;
  shared-network floor { default-lease-time 600;
    group inner { subnet 10.28.0.0 netmask 255.255.255.0 { pool { range 10.28.0.100 10.28.0.150;
      host m1 { hardware ethernet 52:54:00:28:00:11; fixed-address 10.28.0.11; } } } }
    subnet6 fd00:28::/64 { group { deny booting; host m2 { hardware ethernet 52:54:00:28:00:12; fixed-address 10.28.0.12; } } }
    host m3 { hardware ethernet 52:54:00:28:00:13; fixed-address 10.28.0.13, fd00:28::13; } } }
`)
	importtest.WantNodes(t, r, c, "m2 52:54:00:28:00:12 10.28.0.12", "m1 52:54:00:28:00:11 10.28.0.11", "m3 52:54:00:28:00:13 10.28.0.13 fd00:28::13")
	for i, want := range []string{"[outer group-1] true", "[outer inner] false", "[outer] false"} {
		if n := c.Pools[0].Nodes[i]; fmt.Sprint(n.Tags, n.Ignore) != want {
			t.Errorf("%s has %v %v, want %s", n.Name, n.Tags, n.Ignore, want)
		}
	}
	for _, s := range c.Subnets {
		if s.Network != "floor" || s.Lease.String() != "10m" || s.Is6() && fmt.Sprint(s.DNS) != "[fd00:28::53]" {
			t.Errorf("subnet %+v", s)
		}
	}
	if got := importtest.Open(c); !slices.Equal(got, []string{leased}) {
		t.Errorf("open %q", got)
	}
}

// TestOneAddressInNoNetwork: a machine with two addresses, of which one is in no network, has the
// other one.
func TestOneAddressInNoNetwork(t *testing.T) {
	r, c := importtest.Text(t, conf, `dhcp-range=10.28.0.0,static,255.255.255.0
dhcp-range=fd00:29::,static,64
dhcp-host=52:54:00:28:00:11,10.28.0.11,[fd00:28::11],m1
dhcp-host=52:54:00:28:00:12,10.99.0.12,[fd00:29::12],m2
dhcp-host=52:54:00:28:00:13,10.28.0.13,[fd00:29::13],m3,10.28.0.14,[fd00:29::14]
dhcp-host=52:54:00:28:00:15,10.99.0.15,[fd00:28::15],m5
`)
	importtest.WantNodes(t, r, c, "m1 52:54:00:28:00:11 10.28.0.11", "m2 52:54:00:28:00:12 fd00:29::12", "m3 52:54:00:28:00:13 10.28.0.13 fd00:29::13")
	fixture.WantText(t, "the report", importtest.Report(r), "input:3: left out: dhcp-host: machine m1: address fd00:28::11 is in none of the networks", "address 10.99.0.12 is",
		"input:5: no counterpart: dhcp-host: address 10.28.0.14", "input:5: no counterpart: dhcp-host: address fd00:29::14", "input:6: left out")
}
