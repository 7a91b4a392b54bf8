package declared

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/decode"
	"drover/pools/config/mistake"
	"drover/pools/option"
)

// maxManifests bounds a file of manifests, in documents.
const maxManifests = 100_000

// manifest is an object as kubectl reads it.
type manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       any      `json:"spec"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

const apiVersion = pools.ObjectGroup + "/" + pools.ObjectVersion

// FromConfig returns the elements of a config as objects, as they were written. Elements
// that cannot be objects are mistakes.
func FromConfig(cfg *pools.Config) (all []*Object, left mistake.Errors) {
	c := converter{}
	for i := range cfg.Subnets {
		c.add(pools.KindSubnet, subnetName(cfg.Subnets[i].CIDR.String()), &cfg.Subnets[i])
	}
	for name, t := range cfg.Tags {
		c.add(pools.KindTag, name, &t)
	}
	times := map[string]int{} // clusters that a host is in, by its name
	for _, h := range hostsOf(cfg) {
		times[h.Name]++
	}
	for _, cl := range cfg.Clusters {
		inside := cl.Hosts
		cl.Hosts = nil // but hosts of several clusters: an object is of one
		for _, h := range inside {
			if times[h.Name] > 1 {
				cl.Hosts = append(cl.Hosts, h)
			} else {
				c.add(pools.KindExternalHost, h.Name, &pools.ClusterHost{Cluster: cl.Name, ExternalHost: h})
			}
		}
		c.add(pools.KindTenant, cl.Name, &cl)
	}
	for _, p := range cfg.Pools {
		nodes := p.Nodes
		p.Nodes = nil
		c.add(pools.KindPool, p.Name, &p)
		for _, n := range nodes {
			c.add(pools.KindMachine, n.Name, &pools.PoolNode{Pool: p.Name, Node: n})
		}
	}
	for i := range cfg.Chassis {
		c.add(pools.KindChassis, cfg.Chassis[i].Name, &cfg.Chassis[i])
	}
	slices.SortFunc(c.all, compare)
	return c.all, c.left
}

func hostsOf(cfg *pools.Config) (all []pools.ExternalHost) {
	for _, cl := range cfg.Clusters {
		all = append(all, cl.Hosts...)
	}
	return all
}

// subnetName makes a name of a network: 10-28-0-0-16.
func subnetName(cidr string) string {
	return strings.Trim(strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(cidr), "-")
}

// converter collects objects.
type converter struct {
	all  []*Object
	left mistake.Errors
}

func (c *converter) add(kind pools.ObjectKind, name string, element any) {
	fields := map[string]json.RawMessage{}
	b, err := json.Marshal(element)
	if err == nil {
		err = json.Unmarshal(b, &fields)
	}
	if err == nil {
		delete(fields, "name")
		b, err = json.Marshal(fields)
	}
	o := New(Key{kind, name}, 0, b)
	switch {
	case err != nil:
		o.failf("", "write it as plain values", "%s: %v", o, err)
	case !option.IsDomain(name) || name != strings.ToLower(name):
		o.failf("name", "rename it: a-z, 0-9, '-' and '.'", "%q cannot be the name of an object", name)
	}
	if len(o.errs) > 0 {
		c.left = append(c.left, o.errs...)
		return
	}
	c.all = append(c.all, o)
}

// Write writes objects as YAML documents, for kubectl apply.
func Write(w io.Writer, namespace string, all []*Object) error {
	for i, o := range all {
		doc, err := decode.Document(manifest{apiVersion, string(o.Kind), metadata{o.Name, namespace}, o.Spec})
		if err != nil {
			return fmt.Errorf("%s: %w", o, err)
		}
		if i > 0 {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
		}
		if err := decode.Write(w, doc); err != nil {
			return err
		}
	}
	return nil
}

// Read reads objects from YAML documents. Errors call them file.
func Read(file string, data []byte) (all []*Object, _ error) {
	docs, err := decode.Documents(file, data)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 || len(docs) > maxManifests {
		return nil, fmt.Errorf("%s: %d objects, want 1 to %d", file, len(docs), maxManifests)
	}
	var errs mistake.Errors
	for i, doc := range docs {
		var spec json.RawMessage
		m := manifest{Spec: &spec}
		if err := json.Unmarshal(doc, &m); err != nil {
			return nil, fmt.Errorf("%s: document %d is not an object: %w", file, i+1, err)
		}
		if m.APIVersion != apiVersion || !slices.Contains(pools.ObjectKinds, pools.ObjectKind(m.Kind)) || m.Metadata.Name == "" {
			return nil, fmt.Errorf("%s: document %d is %s %q of %s: want an object of %s with a name (kinds: %s)", file, i+1, m.Kind, m.Metadata.Name, m.APIVersion, apiVersion, kindNames())
		}
		o := New(Key{pools.ObjectKind(m.Kind), m.Metadata.Name}, 0, bytes.Clone(spec))
		errs = append(errs, o.errs...)
		all = append(all, o)
	}
	slices.SortStableFunc(all, compare)
	return all, errs.Err()
}

func kindNames() string {
	names := make([]string, len(pools.ObjectKinds))
	for i, k := range pools.ObjectKinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// Element returns the element of the config file that an object stands for.
func (o *Object) Element() decode.Element {
	e := decode.Element{Key: "name", Name: o.Name, Value: o.element}
	switch v := o.element.(type) {
	case *pools.Subnet:
		e.List, e.Key, e.Name = "subnets", "cidr", v.CIDR.String()
	case *pools.Tag:
		e.List, e.Key = "tags", ""
	case *pools.Cluster:
		e.List = "clusters"
	case *pools.Pool:
		e.List = "pools"
	case *pools.PoolNode:
		e.List, e.Of, e.Value = "pools", v.Pool, v.Node
	case *pools.ClusterHost:
		e.List, e.Of, e.Value = "clusters", v.Cluster, v.ExternalHost
	default:
		e.List = "chassis"
	}
	return e
}
