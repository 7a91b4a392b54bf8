package resolve

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"drover/pools"
)

// Farm is a config that was checked as a whole, with the nodes added over the
// API. It does not change.
type Farm struct {
	Config pools.Config
	Source string // the file it was read from, as it was named

	lines     map[string]int
	included  []string
	objects   []string
	addresses addresses
	shadowed  []pools.PoolNode
	waiting   []pools.PoolNode
	added     []pools.PoolNode // of the API and of chassis
	contested []netip.Addr
	services  map[netip.Addr]bool // see [Plan.Serves]

	infrastructure map[netip.Addr]string // see [pools.Config.Infrastructure]

	entries    []*entry // declared nodes in the order of the file, then added ones
	byMAC      map[pools.MAC]*entry
	byName     map[string]*entry
	byIP       map[netip.Addr]*entry
	byRelay    map[netip.Addr]int // index of the subnet that lists the relay agent
	byIdentity identities
	catchalls  []*entry // in the order of the file
	retired    retired
}

// Checked is the input of [NewFarm]: a config in which package config found no
// mistake, with the line of each value.
type Checked struct {
	Config    pools.Config
	Source    string         // the file it was read from, as it was named
	Lines     map[string]int // of each value, by its path ("pools[0].nodes[2].ip"), see [OriginOf]
	Included  []string       // names of the files that the file includes
	Objects   []string       // names of the objects with values in the config: "Machine m1"
	Listeners pools.Server   // the server section that the listeners were started with
	Local     []Local        // the addresses of this server
	Local6    []Local        // the IPv6 addresses of this server

	Added    []pools.PoolNode // the nodes of the API and of chassis
	Shadowed []pools.PoolNode // the nodes that are left out, see [Farm.Shadowed]
	Waiting  []pools.PoolNode // likewise, see [Farm.Waiting]

	// Contested are the addresses of nodes that other machines leased when the farm was
	// put in force.
	Contested []netip.Addr
}

// NewFarm indexes a checked config.
func NewFarm(c Checked) *Farm {
	f := &Farm{
		Config: c.Config, Source: c.Source, lines: c.Lines, included: c.Included, objects: c.Objects, shadowed: c.Shadowed, waiting: c.Waiting, added: c.Added, contested: c.Contested,
		byMAC: map[pools.MAC]*entry{}, byName: map[string]*entry{}, byIP: map[netip.Addr]*entry{}, byIdentity: newIdentities(),
	}
	f.indexRelays()
	f.indexAddresses(&c)
	f.index(c.Added)
	f.indexServices()
	return f
}

func (f *Farm) indexRelays() {
	f.byRelay = map[netip.Addr]int{}
	for i, s := range f.Config.Subnets {
		for _, a := range s.Relays {
			f.byRelay[a] = i
		}
	}
}

// entry is the index record of one node, or of the machines of a catch-all pool.
//
// The fields that each packet needs come first, in two cache lines: in a farm of
// thousands of nodes, consecutive packets come from different nodes.
type entry struct {
	pool     int
	subnet   int // index; -1: known only from the client's link
	subnet6  int // the same for IPv6
	catchall bool
	retired  bool // see [Farm.WithRetired]
	ignore   bool
	matcher  *matcher // conditions that the client must match; nil: the MAC is enough
	profile  *profile
	options  []Option // the profile's, and the node's own
	name     string   // name, macs and address are the node's
	macs     []pools.MAC
	address  netip.Addr

	options6 []Option6
	slaac    netip.Prefix // of which the node makes its IPv6 address; zero: it has IP6, or none
	pools.NodeInfo
	path string // of the node in the file; empty when the API added it, and for a catch-all
}

func (f *Farm) index(added []pools.PoolNode) {
	profiles := map[string]*profile{}
	add := func(e *entry, pool int, anyAddress, any6 netip.Addr) {
		e.pool, e.subnet, e.subnet6 = pool, f.Config.SubnetOf(anyAddress), f.Config.SubnetOf(any6)
		e.name, e.macs, e.address, e.ignore = e.Name, e.MACs, e.IP, e.Ignore
		if !e.catchall {
			e.slaac = f.Config.SLAAC(&e.Node)
		}
		if e.slaac.IsValid() {
			e.subnet6 = f.Config.SubnetOf(e.slaac.Addr())
		}
		tags := tagOrder(f.Config.Pools[e.pool].Tags, e.Tags)
		key := strings.Join(tags, "\n")
		if profiles[key] == nil {
			profiles[key] = f.merge(tags)
		}
		e.profile = profiles[key]
		e.options, e.options6 = e.profile.options, e.profile.options6
		if len(e.DHCPOptions) > 0 {
			set := e.profile.optionSet.with(e.DHCPOptions)
			e.options, e.options6 = set.options(), set.options6()
		}
		f.insert(e)
	}
	for i, p := range f.Config.Pools {
		for j, n := range p.Nodes {
			path := fmt.Sprintf("pools[%d].nodes[%d]", i, j)
			add(&entry{NodeInfo: pools.NodeInfo{PoolNode: pools.PoolNode{Pool: p.Name, Node: n}, Source: f.at(path)}, path: path}, i, n.IP, n.IP6)
		}
		if p.CatchAll {
			info := pools.NodeInfo{PoolNode: pools.PoolNode{Pool: p.Name, Node: pools.Node{Match: p.Match}}}
			add(&entry{NodeInfo: info, catchall: true}, i, p.Range.First, p.Range6.First)
		}
	}
	for _, n := range added {
		pool := slices.IndexFunc(f.Config.Pools, func(p pools.Pool) bool { return p.Name == n.Pool })
		add(&entry{NodeInfo: pools.NodeInfo{PoolNode: n, Source: n.Origin()}}, pool, n.IP, n.IP6)
	}
}

// insert adds an entry to the indexes that [Farm.find] uses.
func (f *Farm) insert(e *entry) {
	if !e.Match.IsZero() {
		e.matcher = newMatcher(e.Match)
	}
	if e.catchall {
		f.catchalls = append(f.catchalls, e)
		return
	}
	f.entries = append(f.entries, e)
	f.byName[e.Name] = e
	for _, a := range [...]netip.Addr{e.IP, e.IP6} {
		if a.IsValid() {
			f.byIP[a] = e
		}
	}
	for _, m := range e.MACs {
		f.byMAC[m] = e
		if e.slaac.IsValid() {
			f.byIP[pools.EUI64(e.slaac, m)] = e
		}
	}
	if len(e.MACs) == 0 {
		f.byIdentity.add(e)
	}
}

// at returns where the value of a path was set: "default" when the file does not
// set it.
func (f *Farm) at(path string) pools.Origin {
	if line, ok := f.lines[path]; ok {
		return OriginOf(f.Source, f.included, f.objects, line, path)
	}
	return pools.Origin{Path: "default"}
}

// PoolOrigin returns where the pool of an index in the config is declared.
func (f *Farm) PoolOrigin(i int) pools.Origin { return f.at(f.poolPath(i)) }

// perFile is more lines than a file has.
const perFile = 1 << 20

// LineIn returns the line in [Checked] of a value in an included file; file is the index of
// its name.
func LineIn(file, line int) int { return (file+1)*perFile + line }

// OriginOf returns the origin of the value of a path, by its line in [Checked]: that of the
// config file, one of [LineIn], or -n for a value of the n-th object.
func OriginOf(source string, included, objects []string, line int, path string) pools.Origin {
	switch {
	case line < 0:
		return pools.Origin{File: objects[-line-1], Path: path}
	case line >= perFile:
		return pools.Origin{File: included[line/perFile-1], Line: line % perFile, Path: path}
	}
	return pools.Origin{File: source, Line: line, Path: path}
}

// Nodes returns all nodes: the declared ones in the order of the file, then the added
// ones.
func (f *Farm) Nodes() []pools.NodeInfo {
	out := make([]pools.NodeInfo, len(f.entries))
	for i, e := range f.entries {
		out[i] = e.NodeInfo
	}
	return out
}

// NodesOf returns the number of nodes of a pool.
func (f *Farm) NodesOf(pool string) (n int) {
	for _, e := range f.entries {
		if e.Pool == pool {
			n++
		}
	}
	return n
}

// Node returns the node of that name.
func (f *Farm) Node(name string) (pools.NodeInfo, bool) {
	if e := f.byName[name]; e != nil {
		return e.NodeInfo, true
	}
	return pools.NodeInfo{}, false
}

// Declares reports whether a node has the MAC m.
func (f *Farm) Declares(m pools.MAC) bool { return f.byMAC[m] != nil }

// NodeOf returns the node that has the MAC m.
func (f *Farm) NodeOf(m pools.MAC) (pools.NodeInfo, bool) {
	if e := f.byMAC[m]; e != nil {
		return e.NodeInfo, true
	}
	return pools.NodeInfo{}, false
}

// HasAddress reports whether a node has the MAC m and an address of its own, by IPv4 or by
// IPv6.
func (f *Farm) HasAddress(m pools.MAC, ipv6 bool) bool {
	e := f.byMAC[m]
	return e != nil && e.own(ipv6, m).IsValid()
}

// Reserved reports whether a is a node's own address, which is never leased to
// another machine. A retired node keeps its own.
func (f *Farm) Reserved(a netip.Addr) bool { return f.byIP[a] != nil || f.retired.byIP[a] != nil }

// Reserved is [Farm.Reserved] of the farm that made the plan.
func (p *Plan) Reserved(a netip.Addr) bool { return p.farm != nil && p.farm.Reserved(a) }

// NodeAt returns the node that owns the address a.
func (f *Farm) NodeAt(a netip.Addr) (pools.NodeInfo, bool) {
	if e := f.byIP[a]; e != nil {
		return e.NodeInfo, true
	}
	return pools.NodeInfo{}, false
}

// Contested reports whether another machine leased the address of a node when the farm was
// put in force. The node gets the address when that lease has ended.
func (f *Farm) Contested(a netip.Addr) bool { return slices.Contains(f.contested, a) }

// Shadowed returns the stored nodes of chassis that are not in the farm. A node of the
// config file has their name, one of their MACs, their address or their slot.
func (f *Farm) Shadowed() []pools.PoolNode { return f.shadowed }

// Waiting returns the nodes of the API that are not in the farm because their pool, their subnet
// or a tag is not: it is an object that was not read yet.
func (f *Farm) Waiting() []pools.PoolNode { return f.waiting }

// Has reports whether there is a node of a name, in the farm or waiting.
func (f *Farm) Has(name string) bool { return f.byName[name] != nil || f.Waits(name) }

// Waits reports whether the node of a name is one of [Farm.Waiting].
func (f *Farm) Waits(name string) bool {
	return slices.ContainsFunc(f.waiting, func(n pools.PoolNode) bool { return n.Name == name })
}

// Path returns a path of the config as seen from the working directory. A relative
// path starts at the directory of the config file.
func (f *Farm) Path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(filepath.Dir(f.Source), p)
}

// Clusters returns the clusters. Their kubeconfig paths are resolved by [Farm.Path]. The nodes
// of pools with role gateway are among their hosts.
func (f *Farm) Clusters() []pools.Cluster {
	out := slices.Clone(f.Config.Clusters)
	for i := range out {
		out[i].Kubeconfig = f.Path(out[i].Kubeconfig)
		out[i].Hosts = slices.Concat(out[i].Hosts, f.Config.Gateways(out[i].Name, f.added))
	}
	return out
}

// Chassis returns the chassis of that name.
func (f *Farm) Chassis(name string) (pools.Chassis, bool) {
	for _, c := range f.Config.Chassis {
		if c.Name == name {
			return c, true
		}
	}
	return pools.Chassis{}, false
}

// SubnetOfLink returns the subnet of a network link: of an interface of this server, or of
// a relay agent (giaddr, or its link selection). It is the subnet that holds the address,
// else the one that lists it in relays; false if there is none.
func (f *Farm) SubnetOfLink(a netip.Addr) (pools.Subnet, bool) {
	if i := f.linkSubnet(a); i >= 0 {
		return f.Config.Subnets[i], true
	}
	return pools.Subnet{}, false
}

// linkSubnet returns the index of the subnet of [Farm.SubnetOfLink], or -1.
func (f *Farm) linkSubnet(a netip.Addr) int {
	if i := f.Config.SubnetOf(a); i >= 0 {
		return i
	}
	if i, ok := f.byRelay[a]; ok {
		return i
	}
	return -1
}

func (f *Farm) poolPath(i int) string   { return fmt.Sprintf("pools[%d]", i) }
func (f *Farm) subnetPath(i int) string { return fmt.Sprintf("subnets[%d]", i) }
