// Package declared makes the objects of the admin cluster a part of the farm's config.
//
// The spec of an [Object] is an element of the config file, field for field; its name is
// the name of the element. [Add] adds objects to a config. [Choose] finds the objects that
// can be in force together: of one that is wrong it takes the last good version.
//
// The package does not know where objects come from, what is checked, and who is told.
package declared

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"drover/pools"
	"drover/pools/config/decode"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// Key identifies an object.
type Key struct {
	Kind pools.ObjectKind `json:"kind"`
	Name string           `json:"name"`
}

// String returns the form of places in errors: Machine m1.
func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// Object is an object as the API server has it. Make it with [New].
type Object struct {
	Key
	Generation int64           `json:"generation"`
	Spec       json.RawMessage `json:"spec"`

	element any      // pointer to the element of the config
	paths   []string // of the values that the spec sets
	errs    mistake.Errors
}

// New returns an object with its spec decoded. Mistakes in the spec are reported by [Add].
func New(key Key, generation int64, spec []byte) *Object {
	o := &Object{Key: key, Generation: generation, Spec: spec}
	o.decode()
	return o
}

// UnmarshalJSON reads an object that was stored.
func (o *Object) UnmarshalJSON(b []byte) error {
	type stored Object
	if err := json.Unmarshal(b, (*stored)(o)); err != nil {
		return err
	}
	if !slices.Contains(pools.ObjectKinds, o.Kind) {
		return fmt.Errorf("unknown kind %q of object %q", o.Kind, o.Name)
	}
	o.decode()
	return nil
}

// Same reports whether two objects have the same spec.
func (o *Object) Same(other *Object) bool {
	return o == other || other != nil && o.Key == other.Key && bytes.Equal(o.Spec, other.Spec)
}

func (o *Object) decode() {
	switch o.Kind {
	case pools.KindSubnet:
		o.element = &pools.Subnet{}
	case pools.KindTag:
		o.element = &pools.Tag{}
	case pools.KindTenant:
		o.element = &pools.Cluster{}
	case pools.KindPool:
		o.element = &pools.Pool{}
	case pools.KindMachine:
		o.element = &pools.PoolNode{}
	case pools.KindExternalHost:
		o.element = &pools.ClusterHost{}
	default:
		o.element = &pools.Chassis{}
	}
	o.paths, o.errs = decode.Object(o.String(), o.Spec, o.element)
	switch e := o.element.(type) {
	case *pools.Cluster:
		e.Name = o.Name
		o.file("kubeconfig", e.Kubeconfig)
	case *pools.Tag:
		refs := e.References()
		for _, field := range slices.Sorted(maps.Keys(refs)) {
			o.failf(field, "write the content itself, or declare the tag in the config file", "%s: %s: files of the server and Secrets are for its config file alone", field, refs[field].Place())
		}
	case *pools.Pool:
		e.Name = o.Name
		for i, n := range e.Nodes {
			o.power(fmt.Sprintf("nodes[%d].power", i), n.Power)
		}
	case *pools.PoolNode:
		e.Name = o.Name
		o.power("power", e.Power)
	case *pools.ClusterHost:
		e.Name = o.Name
	case *pools.Chassis:
		e.Name = o.Name
		o.file("passwordFile", e.PasswordFile)
	}
}

func (o *Object) failf(at, hint, format string, args ...any) {
	o.errs = append(o.errs, &mistake.Error{Origin: pools.Origin{File: o.String(), Path: at}, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// file refuses a file outside of the directory of the config file: a person with write
// access to objects need not have access to this host, and drover sends a password to the
// address that the object names.
func (o *Object) file(at, name string) {
	if name != "" && (path.IsAbs(name) || path.Clean(name) != name || name == ".." || len(name) > 2 && name[:3] == "../") {
		o.failf(at, "write a path inside of that directory: secrets/ilo.pass", "%s: %q is not a file below the directory of the config file, which an object may name", at, name)
	}
}

// power refuses programs of this host, likewise.
func (o *Object) power(at string, p *pools.NodePower) {
	if p == nil {
		return
	}
	if p.Driver == pools.Exec || p.Program != "" || len(p.Options) > 0 {
		o.failf(at, "declare the node in the config file", "%s: programs of the server and their options are for its config file alone", at)
	}
	o.file(at+".passwordFile", p.PasswordFile)
}

// Add adds objects to a config, which may be that of a file, behind the elements that it
// has. Its slices and maps are copied before. The mistakes are those of single objects.
func Add(c *resolve.Checked, all []*Object) (errs mistake.Errors) {
	cfg := &c.Config
	cfg.Subnets, cfg.Clusters, cfg.Pools, cfg.Chassis = slices.Clone(cfg.Subnets), slices.Clone(cfg.Clusters), slices.Clone(cfg.Pools), slices.Clone(cfg.Chassis)
	if len(all) == 0 {
		return nil
	}
	a := adder{c: c, pools: map[string]int{}, nodes: map[int][]pools.Node{}, clusters: map[string]int{}, hosts: map[int][]pools.ExternalHost{}}
	if cfg.Tags = maps.Clone(cfg.Tags); cfg.Tags == nil {
		cfg.Tags = map[string]pools.Tag{}
	}
	c.Lines, c.Objects = maps.Clone(c.Lines), slices.Clone(c.Objects)
	for i, p := range cfg.Pools {
		a.pools[p.Name] = i
	}
	for i, cl := range cfg.Clusters {
		a.clusters[cl.Name] = i
	}
	for _, o := range slices.SortedFunc(slices.Values(all), compare) {
		c.Objects = append(c.Objects, o.String())
		a.errs = append(a.errs, o.errs...)
		if at := a.add(o); at != "" {
			a.mark(at, o)
		}
	}
	for i, nodes := range a.nodes {
		cfg.Pools[i].Nodes = slices.Concat(cfg.Pools[i].Nodes, nodes)
	}
	for i, hosts := range a.hosts {
		cfg.Clusters[i].Hosts = slices.Concat(cfg.Clusters[i].Hosts, hosts)
	}
	return a.errs
}

func compare(a, b *Object) int { return compareKeys(a.Key, b.Key) }

// compareKeys sorts by kind, so that none refers to a later one, and by name.
func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(slices.Index(pools.ObjectKinds, a.Kind), slices.Index(pools.ObjectKinds, b.Kind)), cmp.Compare(a.Name, b.Name))
}

// adder adds objects to a config.
type adder struct {
	c        *resolve.Checked
	pools    map[string]int               // index by name
	nodes    map[int][]pools.Node         // of Machines, by the index of their pool
	clusters map[string]int               // index by name
	hosts    map[int][]pools.ExternalHost // of ExternalHosts, by the index of their cluster
	errs     mistake.Errors
}

// mark makes an object the origin of its values.
func (a *adder) mark(at string, o *Object) {
	line := -len(a.c.Objects)
	a.c.Lines[at] = line
	for _, p := range o.paths {
		if p != "" {
			a.c.Lines[at+"."+p] = line
		}
	}
	if o.Kind != pools.KindTag {
		a.c.Lines[at+".name"] = line
	}
}

// add adds the element of an object, and returns its path; "" if it has no place.
func (a *adder) add(o *Object) string {
	cfg := &a.c.Config
	switch e := o.element.(type) {
	case *pools.Subnet:
		cfg.Subnets = append(cfg.Subnets, *e)
		return fmt.Sprintf("subnets[%d]", len(cfg.Subnets)-1)
	case *pools.Tag:
		at := "tags." + o.Name
		if _, dup := cfg.Tags[o.Name]; dup {
			first := resolve.OriginOf(a.c.Source, a.c.Included, a.c.Objects, a.c.Lines[at], at)
			o := pools.Origin{File: o.String(), Path: at}
			a.errs = append(a.errs, &mistake.Error{Origin: o, Msg: fmt.Sprintf("tag %q is there twice, first in %s", at[len("tags."):], first.Position()), Hint: "rename or remove one", Other: first})
			return ""
		}
		cfg.Tags[o.Name] = *e
		return at
	case *pools.Cluster:
		cfg.Clusters = append(cfg.Clusters, *e)
		if _, dup := a.clusters[o.Name]; !dup {
			a.clusters[o.Name] = len(cfg.Clusters) - 1
		}
		return fmt.Sprintf("clusters[%d]", len(cfg.Clusters)-1)
	case *pools.Pool:
		cfg.Pools = append(cfg.Pools, *e)
		if _, dup := a.pools[o.Name]; !dup {
			a.pools[o.Name] = len(cfg.Pools) - 1
		}
		return fmt.Sprintf("pools[%d]", len(cfg.Pools)-1)
	case *pools.Chassis:
		cfg.Chassis = append(cfg.Chassis, *e)
		return fmt.Sprintf("chassis[%d]", len(cfg.Chassis)-1)
	case *pools.ClusterHost:
		return a.host(o, e)
	}
	return a.machine(o, o.element.(*pools.PoolNode))
}

func (a *adder) machine(o *Object, n *pools.PoolNode) string {
	i, ok := a.pools[n.Pool]
	if !ok {
		a.unknown(o, "node", "pool", n.Pool, a.pools)
		return ""
	}
	a.nodes[i] = append(a.nodes[i], n.Node)
	return fmt.Sprintf("pools[%d].nodes[%d]", i, len(a.c.Config.Pools[i].Nodes)+len(a.nodes[i])-1)
}

func (a *adder) host(o *Object, h *pools.ClusterHost) string {
	i, ok := a.clusters[h.Cluster]
	if !ok {
		a.unknown(o, "host", "cluster", h.Cluster, a.clusters)
		return ""
	}
	host := h.ExternalHost
	host.Expose = slices.Clone(host.Expose) // its defaults are set in place
	a.hosts[i] = append(a.hosts[i], host)
	return fmt.Sprintf("clusters[%d].hosts[%d]", i, len(a.c.Config.Clusters[i].Hosts)+len(a.hosts[i])-1)
}

// unknown notes that an object is a part of an element, by the field of that name, that is not
// there.
func (a *adder) unknown(o *Object, what, field, name string, known map[string]int) {
	a.errs = append(a.errs, &mistake.Error{
		Origin: pools.Origin{File: o.String(), Path: field},
		Msg:    fmt.Sprintf("%s %q: unknown %s %q", what, o.Name, field, name),
		Hint:   mistake.Hint(name, slices.Sorted(maps.Keys(known)), "declare it under "+field+"s:"),
	})
}
