package migrate

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config"
)

// Options are the operator's choices for what the other config does not say.
type Options struct {
	Interfaces []string       // that nodes boot from
	Address    netip.Addr     // of this server
	DHCP       pools.DHCPMode // default full
	Image      string         // of the pools
	Pool       string         // of the machines
	Cluster    string         // that the machines join
	Subnets    []netip.Prefix // networks that the other config does not name

	// Namespace is that of the objects that the config becomes; empty: it stays a config.
	Namespace string
	// Kubernetes is the version of the control planes that drover runs in the admin cluster in
	// place of the other server's; empty: the clusters exist.
	Kubernetes string
}

// The defaults of [Options]. They are marked in the config, for the operator to replace.
const (
	defaultInterface = "eth0"
	DefaultImage     = "debian-12"
	DefaultPool      = "nodes"
)

// Farm is a farm in the making. A reader fills it, then calls Finish.
type Farm struct {
	Options
	Notes []Note

	// Global has the options of all machines.
	Global Scope
	// Guess allows a network of 256 addresses around a machine that is in no network.
	Guess bool
	// Apart says that entries with one address and several names are different machines: a
	// mistake of the table, not a machine with several cards.
	Apart bool
	// SelfMade says that machines make their IPv6 addresses themselves (SLAAC).
	SelfMade bool

	asked    Options // without the defaults
	served   bool    // Interfaces are those of the other config
	networks []*Network
	there    pools.Config // that the import adds to; the zero Config: none
	pools    []*pools.Pool
	lands    []*CatchAll
	left     string // a machine that the config names, and that is no node
	known    bool   // unknown machines get no answer: none of lands is written
	closed   string // a rule for all machines that drover does not have; none of lands is written
	tags     map[string]*tag
	machines []*Machine
	clusters []pools.Cluster
	comments []comment
	derived  []Option
	claims   []claim
	leaves   []Note // of the other config
}

// tag is a tag in the making.
type tag struct {
	pools.Tag
	Scope
}

// comment is a comment of the config. The path has keys, and in lists the name or the
// network of an item.
type comment struct {
	path []string
	text string
}

// Network is a network of the other config.
type Network struct {
	Scope
	At      pools.Origin
	Prefix  netip.Prefix
	Segment string // the name of the layer-2 network that it shares with others
	Lease   pools.Duration
	Relays  []netip.Addr

	// Proxy says that another server gives the addresses of the network.
	Proxy bool

	tag   string // with the options that are no fields of a subnet
	there bool   // only the config that the import adds to has the network
}

// CatchAll is a range of addresses for unknown machines.
type CatchAll struct {
	pools.Pool
	At      pools.Origin
	scope   *Scope // with options of its own; nil: none
	unnamed bool   // machines that the config names may not lease from it
}

// NewFarm returns an empty farm.
func NewFarm(o Options) *Farm {
	f := &Farm{asked: o, tags: map[string]*tag{}}
	if len(o.Interfaces) == 0 {
		o.Interfaces = []string{defaultInterface}
	}
	o.Image = cmp.Or(o.Image, DefaultImage)
	o.Pool = cmp.Or(o.Pool, DefaultPool)
	f.Options = o
	for _, p := range o.Subnets {
		f.Network(p, pools.Origin{Path: "--subnet"})
	}
	f.Global.Name = "tags.all"
	return f
}

// Serve adds an interface of the other config, unless the operator named some.
func (f *Farm) Serve(at pools.Origin, name string) {
	if len(f.asked.Interfaces) > 0 && !slices.Contains(f.asked.Interfaces, name) {
		f.Lost(at, "interface %q: the operator named others (--interface)", name)
		return
	}
	if !f.served && len(f.asked.Interfaces) == 0 {
		f.served, f.Interfaces = true, nil
	}
	if !slices.Contains(f.Interfaces, name) {
		f.Interfaces = append(f.Interfaces, name)
	}
	f.Taken(at, "server.interfaces", name)
}

// Network returns the network with a prefix, and adds it if it is new.
func (f *Farm) Network(p netip.Prefix, at pools.Origin) *Network {
	p = p.Masked()
	if n := f.networkWith(p); n != nil {
		return n
	}
	n := &Network{At: at, Prefix: p, Scope: Scope{Name: "subnet " + p.String()}}
	f.networks = append(f.networks, n)
	return n
}

// networkWith returns the network with a masked prefix, or nil.
func (f *Farm) networkWith(p netip.Prefix) *Network {
	for _, n := range f.networks {
		if n.Prefix == p {
			return n
		}
	}
	return nil
}

// Networks returns all networks so far.
func (f *Farm) Networks() []*Network { return f.networks }

// RangeOf returns the addresses of a prefix.
func RangeOf(p netip.Prefix) pools.Range {
	first := p.Masked().Addr()
	if first.Is4() {
		return pools.Range{First: first, Last: LastOf(p)}
	}
	return pools.Range{First: first, Last: plus(first, config.MaxRange-1)}
}

// NetworkOf returns the network that holds an address, or nil.
func (f *Farm) NetworkOf(a netip.Addr) *Network {
	for _, n := range f.networks {
		if a.IsValid() && n.Prefix.Contains(a) {
			return n
		}
	}
	return nil
}

// Tag returns the tag with a name, and adds it if it is new. The name may be any text: the
// first result is the name that the tag gets.
func (f *Farm) Tag(name string) (string, *pools.Tag) {
	name, t := f.tag(name)
	return name, &t.Tag
}

// TagScope returns the options of a tag.
func (f *Farm) TagScope(name string) *Scope {
	name, t := f.tag(name)
	if name == allTag {
		return &f.Global
	}
	return &t.Scope
}

// allTag is the tag of all nodes.
const allTag = "all"

func (f *Farm) tag(name string) (string, *tag) {
	name = TagName(name)
	if f.tags[name] == nil {
		f.tags[name] = &tag{Scope: Scope{Name: "tags." + name}}
	}
	return name, f.tags[name]
}

// HasTag reports whether a tag with the name exists.
func (f *Farm) HasTag(name string) bool { return f.tags[TagName(name)] != nil }

// TagName returns the name of a tag for any text: letters, digits, '-', '_' and '.'.
func TagName(text string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
			return r
		}
		return '-'
	}, text)
	return cmp.Or(strings.Trim(name[:min(len(name), 63)], "-_."), "tag")
}

// PoolNamed returns the pool with a name, and adds it if it is new. The name may be any
// text.
func (f *Farm) PoolNamed(name string) *pools.Pool {
	name = cmp.Or(Label(name), DefaultPool)
	for _, p := range f.pools {
		if p.Name == name {
			return p
		}
	}
	p := &pools.Pool{Name: name, Image: f.Image, Cluster: f.Cluster}
	f.pools = append(f.pools, p)
	return p
}

// Access is which machines may lease from a range of the other config.
type Access struct {
	Known   bool   // only those that the config names
	Unnamed bool   // only those that the config does not name
	Closed  string // a rule that drover does not have: allow members of "phones"
}

// Land adds a pool for unknown machines, if access lets any of them in.
func (f *Farm) Land(c CatchAll, access Access) {
	switch {
	case access.Known:
		f.Itself(c.At, "range %s is for machines that the config names: nodes have fixed addresses, and there is no catch-all pool", anyRange(&c))
	case access.Closed != "":
		f.restrict(&c, access.Closed)
	default:
		c.unnamed = access.Unnamed
		f.CatchAll(c)
	}
}

func (f *Farm) restrict(c *CatchAll, rule string) {
	f.restricted(c.At, "range %s is left out, by the rule %s: drover does not have it, and a catch-all pool would be open to all machines", anyRange(c), rule)
}

// Close leaves out all ranges: the other config keeps machines out by a rule for all of it,
// which drover does not have.
func (f *Farm) Close(at pools.Origin, rule string) {
	if f.closed == "" {
		f.closed = rule
	}
	f.restricted(at, "the rule %s keeps machines out, and drover does not have it: no range is taken over", rule)
}

// KnownOnly leaves out all ranges: unknown machines get no answer.
func (f *Farm) KnownOnly() { f.known = true }

// CatchAll adds a pool for unknown machines. Finish makes its range one that drover can
// lease from, and its name one of its own.
func (f *Farm) CatchAll(c CatchAll) {
	c.CatchAll, c.Image = true, cmp.Or(c.Image, f.Image)
	if !c.Ignore {
		c.Cluster = cmp.Or(c.Cluster, f.Cluster)
	}
	f.lands = append(f.lands, &c)
}

// AddCluster adds a cluster.
func (f *Farm) AddCluster(c pools.Cluster) { f.clusters = append(f.clusters, c) }

// Comment adds a comment to the config. The path has keys, and in lists the name or the
// network of an item: pools, compute.
func (f *Farm) Comment(text string, path ...string) {
	f.comments = append(f.comments, comment{path, text})
}

// Machines returns the number of machines so far.
func (f *Farm) Machines() int { return len(f.machines) }

// Label returns a DNS label for any text: lower case, with '-' for other characters; ""
// if nothing is left.
func Label(text string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimSpace(text)))
	return strings.Trim(label[:min(len(label), 63)], "-")
}
