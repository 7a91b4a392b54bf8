package resolve_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

func farm(t testing.TB, added ...pools.PoolNode) *resolve.Farm {
	t.Helper()
	f, err := config.Load("testdata/farm.yaml", added...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mac(t testing.TB, s string) pools.MAC {
	t.Helper()
	m, err := pools.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestResolve compares the whole Plan of each kind of machine, with the origin of each
// value, with golden files.
func TestResolve(t *testing.T) {
	f := farm(t)
	for name, q := range map[string]resolve.Query{
		"fixed-bios":      {MAC: mac(t, "94:57:a5:d3:ec:f2"), Firmware: pools.BIOS},
		"second-nic-uefi": {MAC: mac(t, "94:57:a5:d3:ec:f3"), Firmware: pools.UEFIx64},
		"node-tags-ipxe":  {MAC: mac(t, "94:57:a5:d3:ec:f4"), Firmware: pools.UEFIx64, IPXE: true},
		"replace-http":    {MAC: mac(t, "94:57:a5:d3:ec:f5"), Firmware: pools.UEFIx64HTTP},
		"catchall":        {MAC: mac(t, "52:54:00:77:01:01"), Firmware: pools.UBootArm64},
		"plain-client":    {MAC: mac(t, "94:57:a5:d3:ec:f2")},
	} {
		t.Run(name, func(t *testing.T) {
			p := f.Resolve(q)
			b, err := json.MarshalIndent(p, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			fmt.Fprintf(&text, "%s\n", b)
			why := p.Why()
			for _, field := range slices.Sorted(maps.Keys(why)) {
				fmt.Fprintf(&text, "%s <- %s\n", field, why[field])
			}
			fixture.Golden(t, "testdata/plan-"+name+".golden", text.String())
		})
	}
}

func TestResolveWithoutCatchAll(t *testing.T) {
	f, err := config.Parse("x.yaml", []byte("server: {interfaces: [eth1]}\nsubnets: [{cidr: 10.0.0.0/24}]\npools: [{name: a, image: b}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Resolve(resolve.Query{MAC: mac(t, "52:54:00:77:01:01")}); p != nil {
		t.Errorf("unknown hardware got a plan in pool %q, want none", p.Pool)
	}
}

func TestResolveZeroMAC(t *testing.T) {
	if p := farm(t).Resolve(resolve.Query{}); p != nil {
		t.Errorf("the zero MAC got node %q, want no plan", p.Node)
	}
}

// TestAddedNode: a node of the API comes before the catch-all pool, and its origin
// names the API.
func TestAddedNode(t *testing.T) {
	n := pools.PoolNode{Pool: "compute", Node: pools.Node{
		Name: "m2c1", MACs: []pools.MAC{mac(t, "52:54:00:77:01:01")}, IP: netip.MustParseAddr("10.28.1.1"), Tags: []string{"debug"},
	}}
	p := farm(t, n).Resolve(resolve.Query{MAC: n.MACs[0], Firmware: pools.BIOS})
	if p.Node != "m2c1" || p.Address != n.IP || p.Cluster != "tenant-a" {
		t.Errorf("got %q %v in cluster %q, want m2c1 10.28.1.1 in tenant-a", p.Node, p.Address, p.Cluster)
	}
	if got, want := p.Why()["address"].String(), `API (node "m2c1")`; got != want {
		t.Errorf("address is from %q, want %q", got, want)
	}
	if got := p.KernelArgs[len(p.KernelArgs)-1]; got != "systemd.log_level=debug" {
		t.Errorf("last kernel argument is %q, want the node's own tag last", got)
	}
}

// TestGateway: a machine of a pool of gateways boots and joins nothing; it is a host of the
// cluster, also when the API has added it.
func TestGateway(t *testing.T) {
	const text = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
clusters:
  - name: a
    kubeconfig: a
    hostNetwork: {podCIDR: 10.244.0.0/16, serviceCIDR: 10.96.0.0/16, hostPodCIDR: 10.244.240.0/20}
    hosts: [{name: legacy1, address: 192.0.2.10}]
  - {name: b, kubeconfig: b}
pools:
  - {name: gw, cluster: a, role: gateway, image: debian-12, nodes: [{name: gw1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11}, {name: gw2, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12, ignore: true}]}
  - {name: web, cluster: a, role: node, image: debian-12, nodes: [{name: n1, macs: ["52:54:00:00:00:03"], ip: 10.28.0.13}]}
`
	added := pools.PoolNode{Pool: "gw", Node: pools.Node{Name: "gw3", MACs: []pools.MAC{mac(t, "52:54:00:00:00:04")}, IP: netip.MustParseAddr("10.28.0.14")}}
	f, err := config.Parse("drover.yaml", []byte(text), added)
	if err != nil {
		t.Fatal(err)
	}
	p := f.Resolve(resolve.Query{MAC: mac(t, "52:54:00:00:00:01"), Firmware: pools.BIOS})
	if p.Cluster != "" || p.Gateway != "a" || p.Why()["gateway"].Line != 10 {
		t.Errorf("cluster %q, gateway %q of %v", p.Cluster, p.Gateway, p.Why()["gateway"])
	}
	if p := f.Resolve(resolve.Query{MAC: mac(t, "52:54:00:00:00:03"), Firmware: pools.BIOS}); p.Cluster != "a" || p.Gateway != "" {
		t.Errorf("a node: cluster %q, gateway %q", p.Cluster, p.Gateway)
	}
	var names []string
	for _, h := range f.Clusters()[0].Hosts {
		names = append(names, fmt.Sprintf("%s %s/%d", h.Name, h.Address, h.Size))
	}
	if got := strings.Join(names, ", "); got != "legacy1 192.0.2.10/28, gw1 10.28.0.11/28, gw3 10.28.0.14/28" || len(f.Clusters()[1].Hosts) != 0 {
		t.Errorf("hosts %s, and %v", got, f.Clusters()[1].Hosts)
	}
}

func TestBadAddedNodes(t *testing.T) {
	good := pools.Node{Name: "m2c1", MACs: []pools.MAC{mac(t, "52:54:00:77:01:01")}, IP: netip.MustParseAddr("10.28.1.1")}
	for name, tt := range map[string]struct {
		edit func(*pools.PoolNode)
		want string
	}{
		"pool":    {func(n *pools.PoolNode) { n.Pool = "compte" }, `unknown pool "compte" (did you mean "compute"?)`},
		"tag":     {func(n *pools.PoolNode) { n.Tags = []string{"fo"} }, `unknown tag "fo"`},
		"address": {func(n *pools.PoolNode) { n.IP = netip.MustParseAddr("10.28.36.173") }, `already that of node "m1c29" in testdata/farm.yaml:47`},
		"mac":     {func(n *pools.PoolNode) { n.MACs = []pools.MAC{mac(t, "94:57:a5:d3:ec:f3")} }, `already that of node "m1c29" in testdata/farm.yaml:47`},
		"no macs": {func(n *pools.PoolNode) { n.MACs = nil }, "has no macs"},
		"no ip":   {func(n *pools.PoolNode) { n.IP = netip.Addr{} }, "has no ip"},
		"name":    {func(n *pools.PoolNode) { n.Name = "" }, "has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			n := pools.PoolNode{Pool: "compute", Node: good}
			tt.edit(&n)
			_, err := config.Load("testdata/farm.yaml", n)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestScriptRender(t *testing.T) {
	p := farm(t).Resolve(resolve.Query{MAC: mac(t, "94:57:a5:d3:ec:f2")})
	got, err := pools.Render("network", p.Scripts["network"].Run, p)
	if want := "#!/bin/sh\necho 'm1c29' br_netfilter\n"; got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := pools.Render("x", "{{.Nodename}}", p); err == nil {
		t.Error("unknown field of the Plan: got no error")
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, nodes := range []int{10, 10_000} {
		f := bigFarm(b, nodes)
		all := f.Nodes()
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % len(all)
				if f.Resolve(resolve.Query{MAC: all[i].MACs[1], Firmware: pools.UEFIx64}) == nil {
					b.Fatal("no plan")
				}
			}
		})
	}
}

func BenchmarkLoad10000(b *testing.B) {
	for b.Loop() {
		bigFarm(b, 10_000)
	}
}

func bigFarm(t testing.TB, nodes int) *resolve.Farm {
	var y strings.Builder
	y.WriteString("server: {interfaces: [eth1], address: 10.0.0.2}\nsubnets: [{cidr: 10.0.0.0/8}]\n" +
		"tags: {a: {labels: {x: y}}}\npools:\n- name: p\n  image: i\n  tags: [a]\n  nodes:\n")
	for i := range nodes {
		fmt.Fprintf(&y, "  - {name: n%d, macs: [\"52:54:00:%02x:%02x:00\", \"52:54:00:%02x:%02x:01\"], ip: 10.1.%d.%d}\n", i, i>>8, i&255, i>>8, i&255, i/250, 1+i%250)
	}
	f, err := config.Parse("big.yaml", []byte(y.String()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAliasBomb: aliases that unfold to millions of values are an error.
func TestAliasBomb(t *testing.T) {
	y := "tags:\n  a: &a {modules: &m [" + strings.Repeat("x,", 2000) + "x]}\n"
	for i := range 2000 {
		y += fmt.Sprintf("  b%d: *a\n", i)
	}
	_, err := config.Parse("bomb.yaml", []byte(y))
	if err == nil || !strings.Contains(err.Error(), "unfolds to more than") {
		t.Errorf("got %.200v, want a refusal", err)
	}
}

// TestDomain: the domain is option 15 of a node or tag, else that of the subnet.
func TestDomain(t *testing.T) {
	f, err := config.Parse("x.yaml", []byte(`
server: {interfaces: [eth1]}
subnets: [{cidr: 10.0.0.0/24, domain: a.example, network: hall}, {cidr: 10.0.1.0/24, domain: b.example, network: hall}]
tags: {t: {dhcpOptions: {domain-name: tag.example.}}}
pools:
- name: a
  image: b
  nodes:
  - {name: plain, macs: ["52:54:00:00:00:01"], ip: 10.0.0.1}
  - {name: tagged, macs: ["52:54:00:00:00:02"], ip: 10.0.0.2, tags: [t]}
  - {name: own, macs: ["52:54:00:00:00:03"], ip: 10.0.0.3, tags: [t], dhcpOptions: {15: own.example}}
`))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := netip.MustParseAddr("10.0.1.9") // an earlier lease, on the same network
	for name, want := range map[string][2]string{
		"plain": {"a.example", "b.example"}, "tagged": {"tag.example", "tag.example"}, "own": {"own.example", "own.example"},
	} {
		n, _ := f.Node(name)
		p := f.Resolve(resolve.Query{MAC: n.MACs[0]})
		if got := [2]string{p.Domain(p.Address), p.Domain(elsewhere)}; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
