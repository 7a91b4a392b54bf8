package readiness

import (
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"drover/imagebuild"
	"drover/pools/config"
)

// kernelWith is /proc of a kernel with these limits of its neighbor tables.
func kernelWith(ipv4, ipv6 string) fstest.MapFS {
	return fstest.MapFS{
		"sys/net/ipv4/neigh/default/gc_thresh3": {Data: []byte(ipv4 + "\n")},
		"sys/net/ipv6/neigh/default/gc_thresh3": {Data: []byte(ipv6 + "\n")},
	}
}

// TestNeighborTables: item 3 of "what is missing" in the protocol tests: with 1000
// machines on one wire the kernel's table of 1024 neighbors was full, and neither docs
// nor /readyz knew of it.
func TestNeighborTables(t *testing.T) {
	const server, nodes = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}, {cidr: 10.29.0.0/16}, {cidr: "fd00:28::/64"}]
clusters: [{name: a, kubeconfig: a.conf}]
pools:
`, `  - {name: web, ignore: true, nodes: [{name: n1, macs: ["02:00:00:00:00:01"], ip: 10.28.0.11}, {name: n2, macs: ["02:00:00:00:00:02"], ip: 10.29.0.12}]}
`
	local := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("10.28.0.0/16"), netip.MustParsePrefix("fd00:28::/64")}
	tests := []struct {
		name, pools string
		kernel      fstest.MapFS
		need        int
		want        string // the line to write; empty: no warning
		need6       int    // entries of IPv6
	}{
		{"a few nodes", nodes, kernelWith("1024", "1024"), 1 + 129, "", 0},
		{"a range of 1000", nodes + "  - {name: rest, catchall: true, image: i, range: 10.28.64.1-10.28.67.232}\n", kernelWith("1024", "1024"), 1001 + 250 + 129, "net.ipv4.neigh.default.gc_thresh3 = 2048", 0},
		{"a table that is large enough", nodes + "  - {name: rest, catchall: true, image: i, range: 10.28.64.1-10.28.67.232}\n", kernelWith("1380", "1024"), 1380, "", 0},
		{"a range behind a relay agent", nodes + "  - {name: rest, catchall: true, image: i, range: 10.29.64.1-10.29.127.250}\n", kernelWith("1024", "1024"), 130, "", 0},
		{"only machines behind a relay agent", "  - {name: rest, catchall: true, image: i, range: 10.29.64.1-10.29.127.250}\n", kernelWith("1", "1"), 0, "", 0},
		{"the largest range", "  - {name: rest, catchall: true, image: i, range: 10.28.1.0-10.28.255.250}\n", kernelWith("1024", "1024"), 65275 + 16318 + 129, "net.ipv4.neigh.default.gc_thresh3 = 131072", 0},
		{"proxy mode, where nodes need no address", "  - {name: web, ignore: true, nodes: [{name: n1, macs: [\"02:00:00:00:00:01\"]}]}\n", kernelWith("1", "1"), 130, "gc_thresh3 = 256", 0},
		{"both families", "  - {name: web, ignore: true, nodes: [{name: n1, macs: [\"02:00:00:00:00:01\"], ip: 10.28.0.11, ip6: \"fd00:28::11\"}, {name: n2, macs: [\"02:00:00:00:00:02\"], ip6: \"fd00:28::12\"}]}\n", kernelWith("1024", "1024"), 1 + 129, "", 4 + 1 + 129},
		{"ranges of both families", "  - {name: rest, catchall: true, image: i, range: 10.28.64.1-10.28.67.232, range6: \"fd00:28::1000-fd00:28::ffff\"}\n", kernelWith("4096", "1024"), 1379, "", 2048 + 512 + 129},
		{"a container that cannot read the limit", nodes + "  - {name: rest, catchall: true, image: i, range: 10.28.64.1-10.28.67.232}\n", fstest.MapFS{}, 1380, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mode := "full"
			if strings.HasPrefix(tt.name, "proxy") {
				mode = "proxy"
			}
			farm, err := config.Parse("drover.yaml", []byte(strings.Replace(server, "{interfaces", "{dhcp: "+mode+", interfaces", 1)+tt.pools))
			if err != nil {
				t.Fatal(err)
			}
			table := neighborTables(farm, local, tt.kernel)[0]
			if table.Need != tt.need {
				t.Errorf("it needs %d entries, want %d", table.Need, tt.need)
			}
			if got := neighborTables(farm, local, tt.kernel)[1].Need; got != tt.need6 {
				t.Errorf("it needs %d entries of IPv6, want %d", got, tt.need6)
			}
			p, tooSmall := table.problem()
			if tooSmall != (tt.want != "") || !strings.Contains(p.Problem, tt.want) {
				t.Errorf("got the warning %q, want %q in it", p.Problem, tt.want)
			}
			if tooSmall && (!p.Warning || p.Brief == "") {
				t.Errorf("got %+v, want a warning with a text for clients without the token", p)
			}
		})
	}
}

// /readyz warns of a table that is too small and stays ready, and drover check prints the
// warning.
func TestNeighborsOfReadiness(t *testing.T) {
	live := openSite(t, `server: {interfaces: [lo], address: 127.0.0.1}
subnets: [{cidr: 127.28.0.0/16}]
pools: [{name: rest, catchall: true, ignore: true, range: 127.28.64.1-127.28.67.232}]
`)
	kernel := kernelWith("1024", "1024")
	r := &Checks{Live: live, Images: imagebuild.Open(t.TempDir()), Loaders: t.TempDir(), Proc: kernel}
	found := false
	for _, p := range r.local() {
		if strings.HasPrefix(p.Part, "kernel ") {
			found = p.Part == "kernel (ipv4)" && p.Warning
		}
	}
	if !found {
		t.Errorf("no warning in %+v", r.local())
	}
	if all := NeighborWarnings(live.Farm(), kernel); len(all) != 1 || !strings.Contains(all[0], "gc_thresh3 = 2048") {
		t.Errorf("got %q", all)
	}
}
