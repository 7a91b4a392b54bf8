package readiness

import (
	"fmt"
	"io/fs"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/resolve"
	"drover/web/api"
)

// otherNeighbors is how many entries of a neighbor table are left to hosts that the
// config does not name: routers, API servers, chassis, and those of other network
// namespaces, which share the table. A quarter of the machines comes on top.
const otherNeighbors = 128

// The largest numbers of machines that a range counts as. A range of IPv6 may have more
// addresses than any farm has machines.
const (
	maxRangeMachines  = 1 << 16
	maxRange6Machines = 1 << 10 // unless the pool has a larger range of IPv4
)

// NeighborTable is the kernel's table of the link-layer addresses of hosts on the wires
// of this host, for one family of addresses (ARP, NDP). When it is full, the kernel drops
// packets to further hosts, "neighbor table overflow" in its log, and TFTP, HTTP and
// renewals of more machines than it holds take minutes.
type NeighborTable struct {
	Family string // as the kernel's parameters have it: ipv4, ipv6
	Limit  int    // its entries at most (gc_thresh3); 0: unknown
	Need   int    // entries that the farm takes; 0: no machine is on a wire of this host
}

// neighborTables returns the tables of both families, for a farm of which the networks
// local are on wires of this host. Machines behind a relay agent share the entry of their
// router. proc is the file system /proc. A network namespace other than the host's first
// cannot read the limits, as in a container.
func neighborTables(farm *resolve.Farm, local []netip.Prefix, proc fs.FS) []NeighborTable {
	v4, v6 := localMachines(farm, local)
	hosts := len(farm.Config.Clusters) + len(farm.Config.Chassis)
	// A machine has a link-local address of IPv6 beside its own.
	tables := []NeighborTable{{Family: "ipv4", Need: withReserve(v4, hosts)}, {Family: "ipv6", Need: withReserve(2*v6, hosts)}}
	for i := range tables {
		text, err := fs.ReadFile(proc, "sys/net/"+tables[i].Family+"/neigh/default/gc_thresh3")
		if err == nil {
			tables[i].Limit, _ = strconv.Atoi(strings.TrimSpace(string(text))) // another text is no limit
		}
	}
	return tables
}

// withReserve returns the entries that machines and named hosts take, with a reserve.
func withReserve(machines, hosts int) int {
	if machines == 0 {
		return 0
	}
	return machines + machines/4 + hosts + otherNeighbors
}

// localMachines returns the number of machines with an address of local networks, by
// family: declared ones, and as many as the ranges have addresses.
func localMachines(farm *resolve.Farm, local []netip.Prefix) (v4, v6 int) {
	add := func(first netip.Addr, machines int) {
		switch {
		case !slices.ContainsFunc(local, func(p netip.Prefix) bool { return p.Contains(first) }):
		case first.Is4():
			v4 += machines
		default:
			v6 += machines
		}
	}
	elsewhere := farm.Config.Server.DHCP != pools.DHCPFull && len(local) > 0
	for _, n := range farm.Nodes() {
		add(n.IP, 1)
		add(n.IP6, 1)
		if elsewhere && !n.IP.IsValid() { // another server gives it an address
			v4++
		}
	}
	for _, p := range farm.Config.Pools {
		n := p.Range.Count(maxRangeMachines)
		add(p.Range.First, n)
		add(p.Range6.First, min(p.Range6.Count(maxRangeMachines), max(n, maxRange6Machines)))
	}
	return v4, v6
}

// problem returns the warning of a table that is too small, if it is.
func (t NeighborTable) problem() (p api.Problem, tooSmall bool) {
	if t.Limit == 0 || t.Need <= t.Limit {
		return p, false
	}
	name := "net." + t.Family + ".neigh.default.gc_thresh3"
	return api.Problem{
		Part: "kernel (" + t.Family + ")", Brief: "its neighbor table is too small", Warning: true,
		Problem: fmt.Sprintf("%s is %d, and the machines of this farm take up to %d entries: beyond, the kernel drops packets to them. "+
			`Write "%s = %d" to a file in /etc/sysctl.d of the host, then run sysctl --system`, name, t.Limit, t.Need, name, advisedLimit(t.Need)),
	}, true
}

// advisedLimit returns the limit to set for a number of entries: a power of two, so that
// a farm that grows a little does not exceed it.
func advisedLimit(need int) int { return 1 << bits.Len(uint(need)) }

// NeighborTables returns the tables of the kernel of this host for a farm.
func NeighborTables(farm *resolve.Farm, proc fs.FS) []NeighborTable {
	return neighborTables(farm, localNetworks(farm), proc)
}

// NeighborWarnings returns, as text, what is too small for a farm in the kernel of this
// host.
func NeighborWarnings(farm *resolve.Farm, proc fs.FS) (out []string) {
	for _, p := range neighborProblems(farm, proc) {
		out = append(out, p.Part+": "+p.Problem)
	}
	return out
}

func neighborProblems(farm *resolve.Farm, proc fs.FS) (out []api.Problem) {
	for _, t := range NeighborTables(farm, proc) {
		if p, tooSmall := t.problem(); tooSmall {
			out = append(out, p)
		}
	}
	return out
}

// localNetworks returns the networks of the interfaces that this server serves, of both
// families.
func localNetworks(farm *resolve.Farm) (networks []netip.Prefix) {
	for _, l := range slices.Concat(farm.Locals(), farm.Locals6()) {
		networks = append(networks, l.Prefix.Masked())
	}
	return networks
}
