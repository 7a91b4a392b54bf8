package pools

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxConfig bounds the config file, in bytes.
const maxConfig = 64 << 20

// Farm is a config that was checked as a whole, with the nodes added over the
// API. It does not change.
type Farm struct {
	Config Config
	Source string // the file it was read from, as it was named

	lines   map[string]int
	checked bool // Config was, with other nodes
	added   []PoolNode

	overruled []PoolNode
	address   netip.Addr // what nodes boot from
	url       string     // base of the node-facing listener, without a slash at its end

	entries    []*entry // declared nodes in the order of the file, then added ones
	byMAC      map[MAC]*entry
	byName     map[string]*entry
	byIP       map[netip.Addr]*entry
	byIdentity identities
	catchalls  []*entry // in the order of the file
}

// entry is all that is known of one node, or of what lands in a catch-all pool,
// before it asks.
//
// What a packet needs comes first, in two cache lines: in a farm of thousands
// each packet is about another node.
type entry struct {
	pool     int
	subnet   int // -1: not known before somebody asks
	catchall bool
	ignore   bool
	kind     *kind // what must fit; nil: the MAC is enough
	profile  *profile
	options  []Option // the profile's, and the node's own
	name     string   // these three are the node's
	macs     []MAC
	address  netip.Addr

	NodeInfo
	path string // of the node in the file; empty when the API added it, and for a catch-all
}

// NodeInfo is a node of a farm with where it comes from.
type NodeInfo struct {
	PoolNode
	Source Origin `json:"source"` // the line that declares it, or the API

	// NextBoot is what no boot has taken yet; only the REST API fills it in.
	NextBoot NextBoot `json:"nextBoot,omitempty"`
}

// Declared tells whether the operator's file declares the node.
func (n NodeInfo) Declared() bool { return n.Source.File != "" }

// Load reads and checks the config file at path, together with nodes added over
// the API. What is wrong is returned all at once, as [Errors].
func Load(path string, added ...PoolNode) (*Farm, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxConfig:
		return nil, fmt.Errorf("%s: %d bytes, more than %d", path, info.Size(), maxConfig)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, added...)
}

// Parse is [Load] for a config that is already in memory; file names it in
// errors, and its folder is where relative paths start.
func Parse(file string, data []byte, added ...PoolNode) (*Farm, error) {
	var cfg Config
	d := decodeYAML(file, data, &cfg)
	if len(d.lines) == 0 { // not YAML at all: nothing more to say
		return nil, d.errs
	}
	kept, overruled := cfg.yield(added)
	f := &Farm{Config: cfg, Source: file, lines: d.lines, overruled: overruled}
	return f.build(kept, d.errs)
}

// with is the same config with other nodes from the API.
func (f *Farm) with(added []PoolNode) (*Farm, error) {
	farm := &Farm{Config: f.Config, Source: f.Source, lines: f.lines, checked: true, overruled: f.overruled}
	farm, err := farm.build(added, nil)
	if err == nil {
		farm.address, farm.url = f.address, f.url
	}
	return farm, err
}

// build checks everything and makes the indexes; errs are the mistakes found
// before.
func (f *Farm) build(added []PoolNode, errs Errors) (*Farm, error) {
	c := &checker{cfg: &f.Config, lines: f.lines, file: f.Source, syntax: newSyntax(), options: newOptionTable(), errs: errs}
	c.defaults()
	c.server()
	c.subnets()
	c.clusterList()
	c.tagList()
	c.pools(added)
	if !f.checked { // 360 names for each, which do not depend on nodes
		c.chassisList()
	}
	if len(c.errs) > 0 {
		return nil, c.errs.sorted()
	}
	f.added = added
	f.reach()
	f.index(c.options)
	return f, nil
}

// reach finds out under which address nodes reach this server.
func (f *Farm) reach() {
	s := f.Config.Server
	f.address = s.Address
	if !f.address.IsValid() && len(s.Interfaces) > 0 {
		f.address = firstIPv4(s.Interfaces[0])
	}
	f.url = "http://" + f.address.String()
	if _, port, _ := net.SplitHostPort(s.HTTP); port != "80" {
		f.url += ":" + port
	}
}

// firstIPv4 returns the first IPv4 address of a network interface; the zero
// Addr when there is no such interface on this host, or no address.
func firstIPv4(name string) netip.Addr {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}
	}
	addrs, _ := ifi.Addrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

func (f *Farm) index(options *optionTable) {
	f.byMAC, f.byName, f.byIP, f.byIdentity = map[MAC]*entry{}, map[string]*entry{}, map[netip.Addr]*entry{}, newIdentities()
	profiles := map[string]*profile{}
	add := func(e *entry, pool int, anyAddress netip.Addr) {
		e.pool, e.subnet = pool, f.Config.subnetOf(anyAddress)
		e.name, e.macs, e.address, e.ignore = e.Name, e.MACs, e.IP, e.Ignore
		tags := tagOrder(f.Config.Pools[e.pool].Tags, e.Tags)
		key := strings.Join(tags, "\n")
		if profiles[key] == nil {
			profiles[key] = f.merge(tags, options)
		}
		e.profile = profiles[key]
		e.options = e.profile.options
		if len(e.DHCPOptions) > 0 {
			e.options = e.profile.wire.with(e.DHCPOptions, options).options()
		}
		f.enter(e)
	}
	for i, p := range f.Config.Pools {
		for j, n := range p.Nodes {
			path := fmt.Sprintf("pools[%d].nodes[%d]", i, j)
			add(&entry{NodeInfo: NodeInfo{PoolNode: PoolNode{p.Name, n}, Source: f.at(path)}, path: path}, i, n.IP)
		}
		if p.CatchAll {
			info := NodeInfo{PoolNode: PoolNode{Pool: p.Name, Node: Node{Match: p.Match}}}
			add(&entry{NodeInfo: info, catchall: true}, i, p.Range.First)
		}
	}
	for _, n := range f.added {
		pool := slices.IndexFunc(f.Config.Pools, func(p Pool) bool { return p.Name == n.Pool })
		add(&entry{NodeInfo: NodeInfo{PoolNode: n, Source: apiOrigin(n)}}, pool, n.IP)
	}
}

// enter puts an entry where [Farm.find] looks.
func (f *Farm) enter(e *entry) {
	if !e.Match.IsZero() {
		e.kind = newKind(e.Match)
	}
	if e.catchall {
		f.catchalls = append(f.catchalls, e)
		return
	}
	f.entries = append(f.entries, e)
	f.byName[e.Name] = e
	if e.IP.IsValid() {
		f.byIP[e.IP] = e
	}
	for _, m := range e.MACs {
		f.byMAC[m] = e
	}
	if len(e.MACs) == 0 {
		f.byIdentity.add(e)
	}
}

// at is where the value of a path was set; "default" when it was not.
func (f *Farm) at(path string) Origin {
	if line, ok := f.lines[path]; ok {
		return Origin{File: f.Source, Line: line, Path: path}
	}
	return Origin{Path: "default"}
}

// Nodes returns every node, declared ones first, in order.
func (f *Farm) Nodes() []NodeInfo {
	out := make([]NodeInfo, len(f.entries))
	for i, e := range f.entries {
		out[i] = e.NodeInfo
	}
	return out
}

// Node returns the node of that name.
func (f *Farm) Node(name string) (NodeInfo, bool) {
	if e := f.byName[name]; e != nil {
		return e.NodeInfo, true
	}
	return NodeInfo{}, false
}

// Reserved tells whether a is a node's own address, which is never leased to
// another machine.
func (f *Farm) Reserved(a netip.Addr) bool { return f.byIP[a] != nil }

// NodeAt returns the node that owns the address a.
func (f *Farm) NodeAt(a netip.Addr) (NodeInfo, bool) {
	if e := f.byIP[a]; e != nil {
		return e.NodeInfo, true
	}
	return NodeInfo{}, false
}

// URL is the base of the node-facing HTTP listener as nodes reach it, without
// a slash at its end.
func (f *Farm) URL() string { return f.url }

// SecureURL is the base of the node-facing HTTPS listener likewise; empty when
// there is none.
func (f *Farm) SecureURL() string {
	_, port, err := net.SplitHostPort(f.Config.Server.HTTPS)
	switch {
	case err != nil:
		return ""
	case port == "443":
		return "https://" + f.address.String()
	}
	return "https://" + f.address.String() + ":" + port
}

// Address is what nodes are told to boot from. It is the zero Addr when the
// config names none and its first interface has none on this host.
func (f *Farm) Address() netip.Addr { return f.address }

// Path returns a path of the config as seen from the working directory: those
// that are not absolute start at the config file.
func (f *Farm) Path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(filepath.Dir(f.Source), p)
}

// Clusters returns the clusters, with paths of kubeconfigs as [Farm.Path] gives
// them.
func (f *Farm) Clusters() []Cluster {
	out := slices.Clone(f.Config.Clusters)
	for i := range out {
		out[i].Kubeconfig = f.Path(out[i].Kubeconfig)
	}
	return out
}

func (f *Farm) poolPath(i int) string   { return fmt.Sprintf("pools[%d]", i) }
func (f *Farm) subnetPath(i int) string { return fmt.Sprintf("subnets[%d]", i) }
