package configfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"drover/internal/natural"
	"drover/internal/printable"
	"drover/pools"
	"drover/pools/config/access"
	"drover/pools/config/compare"
	"drover/pools/resolve"
)

// diff is what a config changes.
type diff struct {
	Added   []string            `json:"added,omitempty"`   // nodes that come
	Removed []string            `json:"removed,omitempty"` // nodes that go
	Changed map[string][]change `json:"changed,omitempty"` // by node
	Other   []string            `json:"other,omitempty"`   // sections without nodes that change: "~ pool web", "+ cluster a"
	Restart bool                `json:"restart,omitempty"` // it would take a restart
	Size    pools.ChangeSize    `json:"size"`              // what it does to nodes, in numbers
}

// change is one field of what a node gets.
type change struct {
	Field string `json:"field"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// differences compares two farms.
func differences(before, after *resolve.Farm) (d diff, err error) {
	old, next := byName(before), byName(after)
	d.Changed = map[string][]change{}
	for _, name := range slices.SortedFunc(maps.Keys(old), natural.Compare) {
		n, stays := next[name]
		if !stays {
			d.Removed = append(d.Removed, name)
			continue
		}
		changes, err := changesOf(before, old[name], after, n)
		if err != nil {
			return d, err
		}
		if len(changes) > 0 {
			d.Changed[name] = changes
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(next), natural.Compare) {
		if _, was := old[name]; !was {
			d.Added = append(d.Added, name)
		}
	}
	d.Size = compare.Farms(before, after).Size()
	x, y := before.Config, after.Config
	d.Other = slices.Concat(
		sections("subnet ", x.Subnets, y.Subnets, func(s pools.Subnet) string { return s.CIDR.String() }),
		sections("cluster ", x.Clusters, y.Clusters, func(c pools.Cluster) string { return c.Name }),
		sections("chassis ", x.Chassis, y.Chassis, func(c pools.Chassis) string { return c.Name }),
		sections("tag ", tagsOf(x), tagsOf(y), func(t tag) string { return t.name }),
		sections("pool ", x.Pools, y.Pools, func(p pools.Pool) string { return p.Name }),
		order(x.Pools, y.Pools),
	)
	d.Restart = access.Restarts(x.Server, y.Server) || !x.HasIPv4() && y.HasIPv4() || !x.HasIPv6() && y.HasIPv6()
	return d, nil
}

// tag is a tag with its name.
type tag struct {
	name string
	pools.Tag
}

func tagsOf(c pools.Config) (all []tag) {
	for name, t := range c.Tags {
		all = append(all, tag{name, t})
	}
	return all
}

// order returns the new order of the catch-all pools that stay, if it is another: the first
// one that takes a machine has it.
func order(before, after []pools.Pool) []string {
	names := func(of, in []pools.Pool) (all []string) {
		for _, p := range of {
			if p.CatchAll && slices.ContainsFunc(in, func(q pools.Pool) bool { return q.CatchAll && q.Name == p.Name }) {
				all = append(all, p.Name)
			}
		}
		return all
	}
	if now := names(after, before); !slices.Equal(names(before, after), now) {
		return []string{"~ order of catch-all pools: " + strings.Join(now, ", ")}
	}
	return nil
}

func byName(f *resolve.Farm) map[string]pools.NodeInfo {
	all := map[string]pools.NodeInfo{}
	for _, n := range f.Nodes() {
		all[n.Name] = n
	}
	return all
}

// sections returns the elements of a list that come, go or change. A pool's nodes are
// compared apart.
func sections[T any](kind string, before, after []T, name func(T) string) (out []string) {
	old, next := map[string]T{}, map[string]T{}
	for _, e := range before {
		old[name(e)] = e
	}
	for _, e := range after {
		next[name(e)] = e
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		e, stays := next[key]
		switch {
		case !stays:
			out = append(out, "- "+kind+key)
		case !same(old[key], e):
			out = append(out, "~ "+kind+key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if _, was := old[key]; !was {
			out = append(out, "+ "+kind+key)
		}
	}
	return out
}

func same(a, b any) bool {
	if p, ok := a.(pools.Pool); ok {
		q := b.(pools.Pool)
		p.Nodes, q.Nodes = nil, nil
		a, b = p, q
	}
	return reflect.DeepEqual(a, b)
}

// changesOf compares what a node gets, field by field.
func changesOf(before *resolve.Farm, old pools.NodeInfo, after *resolve.Farm, next pools.NodeInfo) ([]change, error) {
	x, password, err := fields(before, old)
	if err != nil {
		return nil, err
	}
	y, newPassword, err := fields(after, next)
	if err != nil {
		return nil, err
	}
	if password != newPassword { // nobody is to read either
		const field = "rootPasswordHash"
		if x[field] = "(hidden)"; password.IsZero() {
			x[field] = ""
		}
		if y[field] = "(changed)"; newPassword.IsZero() {
			y[field] = ""
		}
	}
	var out []change
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a, b := x[key], y[key]; a != b {
			out = append(out, change{Field: key, Old: a, New: b})
		}
	}
	return out, nil
}

// anyMAC stands for the MAC of a machine that is known by other things.
var anyMAC = pools.MAC{0x02, 0xff, 0xff, 0xff, 0xff, 0xff}

// fields returns what a node gets, as JSON by field: its own, and the plan of its first MAC.
// A plan holds no secret but the hash of a password, which is apart.
func fields(f *resolve.Farm, n pools.NodeInfo) (all map[string]string, password pools.Secret, err error) {
	all = map[string]string{}
	if err := flatten(all, n.PoolNode); err != nil {
		return nil, password, err
	}
	var p *resolve.Plan
	if len(n.MACs) > 0 {
		p = f.Resolve(resolve.Query{MAC: n.MACs[0], Link: n.IP})
	} else {
		p = f.ResolveLeased(resolve.Query{MAC: anyMAC}, pools.Lease{Node: n.Name})
	}
	if p == nil {
		return all, password, nil
	}
	if err := flatten(all, p); err != nil {
		return nil, password, err
	}
	err = flatten(all, p.Settings)
	delete(all, "settings") // its fields are there
	delete(all, "node")     // it is the name
	if len(n.MACs) == 0 && !n.IP6.IsValid() {
		delete(all, "address6") // made from the MAC
	}
	return all, p.RootPasswordHash, err
}

// flatten adds the fields of v, a struct, to all.
func flatten(all map[string]string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	for key, value := range raw {
		all[key] = string(bytes.Trim(value, `"`))
	}
	return nil
}

// maxShown bounds a value in the text, in bytes.
const maxShown = 100

// text writes the differences for people.
func (d diff) text(w io.Writer) error {
	var b strings.Builder
	for _, s := range d.Other {
		fmt.Fprintln(&b, s)
	}
	for _, name := range d.Removed {
		fmt.Fprintln(&b, "- node", name)
	}
	for _, name := range d.Added {
		fmt.Fprintln(&b, "+ node", name)
	}
	for _, names := range d.alike() {
		fmt.Fprintln(&b, "~", nodesText(names))
		for _, c := range d.Changed[names[0]] {
			fmt.Fprintf(&b, "    %s: %s -> %s\n", c.Field, shown(c.Old), shown(c.New))
		}
	}
	if d.Restart {
		fmt.Fprintln(&b, "~ server (takes a restart)")
	}
	fmt.Fprintf(&b, "%d nodes added, %d removed, %d changed\n", len(d.Added), len(d.Removed), len(d.Changed))
	fmt.Fprintf(&b, "size: %s\n", d.Size.Counts())
	_, err := io.WriteString(w, b.String())
	return err
}

// alike returns the names of the nodes that change, those with equal changes together.
func (d diff) alike() (groups [][]string) {
	at := map[string]int{}
	for _, name := range slices.SortedFunc(maps.Keys(d.Changed), natural.Compare) {
		key := fmt.Sprintf("%q", d.Changed[name])
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], name)
	}
	return groups
}

// maxNames bounds the names of nodes in a line. With -o json all are there.
const maxNames = 8

// nodesText names nodes: "node web1", or "201 nodes: web1, web2, ...".
func nodesText(names []string) string {
	if len(names) == 1 {
		return "node " + names[0]
	}
	text := fmt.Sprintf("%d nodes: %s", len(names), strings.Join(names[:min(len(names), maxNames)], ", "))
	if len(names) > maxNames {
		text += ", ..."
	}
	return text
}

func shown(value string) string {
	if value == "" {
		return "(nothing)"
	}
	return printable.Line(value, maxShown)
}
