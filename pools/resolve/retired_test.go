package resolve_test

import (
	"net/netip"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// TestRetired: a machine that runs as a retired node keeps its address, and gets nothing else. No
// other machine gets the address, and a new boot is that of unknown hardware.
func TestRetired(t *testing.T) {
	farm, err := config.Parse("drover.yaml", []byte(`
server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, lease: 2h}]
pools:
  - name: web
    image: debian-12
    nodes: [{name: taker, macs: ["52:54:00:00:00:09"], ip: 10.28.0.29}]
  - {name: lobby, catchall: true, image: debian-12, range: 10.28.0.20-10.28.0.99}
`))
	if err != nil {
		t.Fatal(err)
	}
	mac := func(n byte) pools.MAC { return pools.MAC{0x52, 0x54, 5: n} }
	ip := netip.MustParseAddr
	node := func(name string, n byte, pool, addr string) pools.RetiredNode {
		return pools.RetiredNode{Since: time.Unix(0, 0), PoolNode: pools.PoolNode{Pool: pool, Node: pools.Node{Name: name, MACs: []pools.MAC{mac(n)}, IP: ip(addr)}}}
	}
	farm = farm.WithRetired([]pools.RetiredNode{
		node("osd-1", 1, "gone", "10.28.0.21"), node("osd-2", 2, "web", "10.28.0.29"), node("osd-3", 3, "web", "10.99.0.1"), node("back", 9, "web", "10.28.0.30"),
	})
	if n := len(farm.Retired()); n != 3 {
		t.Errorf("%d retired nodes, want 3: the MAC of one is declared", n)
	}
	if !farm.Reserved(ip("10.28.0.21")) || farm.Leasable(ip("10.28.0.21")) {
		t.Error("the address of a retired node can be leased")
	}
	here := ip("10.28.0.2")
	for what, tt := range map[string]struct {
		q    resolve.Query
		want string
	}{
		"renews":                       {resolve.Query{MAC: mac(1), Keeps: ip("10.28.0.21"), Renewing: true}, "osd-1"},
		"boots anew":                   {resolve.Query{MAC: mac(1), Firmware: pools.BIOS}, pools.CatchAllName(mac(1))},
		"runs as unknown hardware":     {resolve.Query{MAC: mac(1), Keeps: ip("10.28.0.50"), Renewing: true}, pools.CatchAllName(mac(1))},
		"a stranger":                   {resolve.Query{MAC: mac(7), Keeps: ip("10.28.0.21"), Renewing: true}, pools.CatchAllName(mac(7))},
		"another node has its address": {resolve.Query{MAC: mac(2), Keeps: ip("10.28.0.29"), Renewing: true}, pools.CatchAllName(mac(2))},
		"its subnet is gone":           {resolve.Query{MAC: mac(3), Keeps: ip("10.99.0.1"), Renewing: true}, ""},
	} {
		tt.q.Link = here
		got := ""
		if p := farm.Resolve(tt.q); p != nil {
			got = p.Node
			if p.Retired && (p.Cluster != "" || p.Image != "" || p.Lease.D() != 2*time.Hour || p.Address != tt.q.Keeps || len(p.Why()) == 0) {
				t.Errorf("%s: got %+v", what, p)
			}
		} else if farm.WhyNot(tt.q) == "" {
			t.Errorf("%s: no reason for silence", what)
		}
		if got != tt.want {
			t.Errorf("%s: it is %q, want %q", what, got, tt.want)
		}
	}
	if p := farm.Resolve(resolve.Query{MAC: mac(1), IPXE: true}); p != nil && (p.Retired || p.Node == "osd-1") {
		t.Errorf("over HTTP it is %q", p.Node)
	}
}
