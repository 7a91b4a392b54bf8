package machines_test

import (
	"net/netip"
	"testing"

	"drover/pools"
	"drover/pools/machines"
	"drover/pools/resolve"
)

// TestServes: TFTP and HTTP answer the declared networks only. Finding H6: they answered
// all hosts, so that anyone could have drover send to third parties.
func TestServes(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, s := range texts {
			all = append(all, netip.MustParsePrefix(s))
		}
		return all
	}
	declared := pools.Config{
		Server:  pools.Server{Clients: prefixes("10.30.0.0/16", "192.0.2.8/32")},
		Subnets: []pools.Subnet{{CIDR: netip.MustParsePrefix("10.0.0.0/16"), Relays: []netip.Addr{addr("10.99.0.1")}}},
	}
	for _, tt := range []struct {
		name   string
		config pools.Config
		yes    []string
		no     []string
	}{
		{
			"declared subnets", declared,
			[]string{"10.0.7.7", "::ffff:10.0.7.7", "10.30.255.1", "192.0.2.8", "127.0.0.1", "::1"},
			[]string{"10.1.0.1", "192.0.2.9", "198.51.100.1", "10.99.0.1", "8.8.8.8", "2001:db8::1"},
		},
		{
			"no subnets: the server's own networks", pools.Config{Server: declared.Server},
			[]string{"198.51.100.1", "10.30.0.1", "127.0.0.1"},
			[]string{"10.0.7.7", "198.51.101.1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			local := []resolve.Local{{Interface: "eth1", Prefix: netip.MustParsePrefix("198.51.100.2/24")}}
			d := machines.Directory{Farm: live{resolve.NewFarm(resolve.Checked{Config: tt.config, Local: local})}}
			for _, a := range tt.yes {
				if !d.Serves(addr(a)) {
					t.Errorf("%s is refused", a)
				}
			}
			for _, a := range tt.no {
				if d.Serves(addr(a)) {
					t.Errorf("%s is served", a)
				}
			}
			if d.Serves(netip.Addr{}) {
				t.Error("the zero address is served")
			}
		})
	}
}
