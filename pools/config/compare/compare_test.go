package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/pools/config"
	"drover/pools/config/compare"
	"drover/pools/resolve"
)

const farm = `server: {interfaces: [lo], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1, network: lan}, {cidr: "fd00:28::/64", slaac: true, network: lan}]
clusters: [{name: a, kubeconfig: a}, {name: b, kubeconfig: b}]
tags:
  quiet: {kernelArgs: quiet, dhcpOptions: {ntp-server: 10.28.0.9}}
pools:
  - name: web
    cluster: a
    image: debian-12
    tags: [quiet]
    nodes:
      - {name: n10, macs: ["52:54:00:00:00:01", "52:54:00:00:00:11"], ip: 10.28.0.11}
      - {name: n9, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12}
  - name: db
    cluster: b
    image: debian-12
    nodes:
      - {name: d1, macs: ["52:54:00:00:00:03"], ip: 10.28.0.13, match: {circuitID: eth9}}
      - {name: port, match: {circuitID: eth7}, ip: 10.28.0.14}
  - {name: any, catchall: true, image: debian-12, range: 10.28.72.1-10.28.72.9}
`

func parse(t testing.TB, text string) *resolve.Farm {
	t.Helper()
	f, err := config.Parse("drover.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFarms(t *testing.T) {
	before := parse(t, farm)
	for _, tt := range []struct {
		name, old, text, want string
		disrupted             int
	}{
		{"nothing", "", "", "no node changes", 0},
		{"a comment", "pools:", "# more\npools:", "no node changes", 0},
		{"a node less", `      - {name: n9, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12}` + "\n", "", "1 removed (n9)", 1},
		{"a node more", "  - name: db", `      - {name: n11, macs: ["52:54:00:00:00:05"], ip: 10.28.0.15}` + "\n  - name: db", "1 added (n11)", 0},
		{"another name", "name: n9", "name: n8", "1 added (n8), 1 removed (n9)", 1},
		{"another cluster, in natural order", "cluster: a", "cluster: b", "2 moved (n9, n10)", 2},
		{"no cluster", "cluster: a", "", "2 moved (n9, n10)", 2},
		{"another image", "image: debian-12\n    tags", "image: debian-13\n    tags", "2 changed (n9, n10)", 0},
		{"an argument of a tag", "kernelArgs: quiet", "kernelArgs: debug", "2 changed (n9, n10)", 0},
		{"an option of a tag", "10.28.0.9}", "10.28.0.8}", "2 changed (n9, n10)", 0},
		{"an own option", "ip: 10.28.0.12", "ip: 10.28.0.12, dhcpOptions: {ntp-server: 10.28.0.8}", "1 changed (n9)", 0},
		{"an own option like that of the tag", "ip: 10.28.0.12", "ip: 10.28.0.12, dhcpOptions: {ntp-server: 10.28.0.9}", "no node changes", 0},
		{"the router", "router: 10.28.0.1,", "router: 10.28.0.3,", "4 changed (d1, n9, n10, port)", 0},
		{"an address", "ip: 10.28.0.13", "ip: 10.28.0.93", "1 re-addressed (d1)", 1},
		{"a second address", "ip: 10.28.0.14", `ip: 10.28.0.14, ip6: "fd00:28::14"`, "1 changed (port)", 0},
		{"all IPv6 addresses", "fd00:28::/64", "fd00:29::/64", "3 re-addressed (d1, n9, n10)", 3},
		{"another board", "52:54:00:00:00:02", "52:54:00:00:00:22", "1 re-addressed (n9), 1 changed (n9)", 1},
		{"one of two cards", "52:54:00:00:00:11", "52:54:00:00:00:12", "1 changed (n10)", 0},
		{"another port", "eth7", "eth8", "1 re-addressed (port), 1 changed (port)", 1},
		{"ignored", "ip: 10.28.0.13", "ip: 10.28.0.13, ignore: true", "1 silenced (d1)", 1},
		{"an ignored pool, moved", "cluster: b\n", "cluster: a\n    ignore: true\n", "2 silenced (d1, port)", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(farm, tt.old) {
				t.Fatalf("%q is not in the farm", tt.old)
			}
			c := compare.Farms(before, parse(t, strings.Replace(farm, tt.old, tt.text, 1)))
			if s := c.Size(); s.String() != tt.want || s.Disrupted != tt.disrupted || s.Before != 4 {
				t.Errorf("got %s, %d disrupted of %d; want %s, %d", s, s.Disrupted, s.Before, tt.want, tt.disrupted)
			}
		})
	}
}

// TestBounded: a size has a few names alone.
func TestBounded(t *testing.T) {
	s := compare.Farms(parse(t, big(100, 100)), parse(t, big(90, 100))).Size()
	if want := "10 removed (m90, m91, m92, m93, m94, ...)"; s.String() != want || s.Counts() != "10 removed" {
		t.Errorf("got %s and %s, want %s", s, s.Counts(), want)
	}
}

// big returns a farm of nodes, with one tag for each group of perTag.
func big(nodes, perTag int) string {
	var b strings.Builder
	b.WriteString("server: {interfaces: [lo], address: 10.28.0.2}\nsubnets: [{cidr: 10.0.0.0/8}]\ntags:\n")
	for i := 0; i <= nodes/perTag; i++ {
		fmt.Fprintf(&b, "  t%d: {kernelArgs: k%d, sysctls: {vm.swappiness: 9}}\n", i, i)
	}
	b.WriteString("pools:\n  - name: web\n    image: debian-12\n    nodes:\n")
	for i := range nodes {
		fmt.Fprintf(&b, "      - {name: m%d, macs: [\"52:54:00:01:%02x:%02x\"], ip: 10.1.%d.%d, tags: [t%d]}\n", i, i>>8, i&255, i>>8, i&255, i/perTag)
	}
	return strings.Replace(b.String(), "10.1.0.0,", "10.2.0.1,", 1)
}

func BenchmarkFarms10000(b *testing.B) {
	before, after := parse(b, big(10_000, 500)), parse(b, big(9_900, 500))
	for b.Loop() {
		compare.Farms(before, after)
	}
}
