package kubefarm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/migrate"
	"drover/migrate/dnsmasq"
	"drover/pools"
)

func (r *reader) nodePools(v *migrate.Value) {
	i := 0
	r.farm.Each(v, func(pool *migrate.Value) {
		name := r.farm.Pool
		if i++; i > 1 {
			name = fmt.Sprintf("%s-%d", name, i)
		}
		r.nodePool(name, pool)
	})
}

// nodePool reads a pool: a range of dnsmasq, nodes, tags, and options of dnsmasq.
func (r *reader) nodePool(name string, v *migrate.Value) {
	f := r.farm
	tags := r.poolTags(v.Get("tags"))
	d := dnsmasq.NewReader(f)
	d.Pool, d.Authoritative, d.Keep = name, true, r.tags
	d.Tags = append([]string{release}, tags...)
	p := f.PoolNamed(name)
	for _, tag := range tags {
		p.Tags = append(p.Tags, migrate.TagName(tag))
	}
	f.Fields(v, migrate.Readers{
		"range":     func(v *migrate.Value) { r.poolRange(d, v) },
		"nodes":     func(v *migrate.Value) { r.nodes(name, v) },
		"extraOpts": func(v *migrate.Value) { r.extraOpts(d, v) },
		"tags":      migrate.Skip,
	})
	d.Finish()
	if len(tags) > 0 && leases(v) {
		f.Bug(v.Get("tags").Origin, "the chart gave tags to the nodes of the list only: machines of a range had no settings, labels and taints of them there; here they have these")
	}
	r.labelOrder(v, tags)
	f.Comment(fmt.Sprintf("nodePools[%s], %s", strings.Trim(strings.TrimPrefix(v.Path, "nodePools"), "[]"), v.Position()), "pools", name)
}

// poolTags returns the tags of a pool. Tags without options are tags here too.
func (r *reader) poolTags(v *migrate.Value) (tags []string) {
	for _, tag := range v.Strings() {
		switch {
		case tag == allTag:
			r.farm.Lost(v.Origin, "tag all: every node has it")
			continue
		case slices.Contains(tags, tag):
			continue
		case !slices.Contains(r.tags, tag):
			r.tags = append(r.tags, tag)
			r.farm.Taken(v.Origin, "tags."+migrate.TagName(tag)+"; it has no options there")
		}
		r.farm.Tag(tag)
		tags = append(tags, tag)
	}
	return tags
}

// leases reports whether a pool has a range for machines that are not in its list.
func leases(v *migrate.Value) bool {
	texts := []string{v.Get("range").String()}
	for _, item := range v.Get("extraOpts").List() {
		texts = append(texts, item.Get("dhcp-range").String())
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		rg, err := dnsmasq.ParseRange(strings.Split(strings.ReplaceAll(text, " ", ""), ","))
		return err == nil && !rg.IsStatic() && !rg.IsAdvertised()
	})
}

func (r *reader) poolRange(d *dnsmasq.Reader, v *migrate.Value) {
	if v.String() == "" {
		return
	}
	fields := strings.Split(v.String(), ",")
	for i, field := range fields {
		fields[i] = strings.TrimSpace(field)
		if strings.HasPrefix(fields[i], "set:") {
			r.farm.Bug(v.Origin, "the chart refuses set: in a range")
			return
		}
	}
	d.Directive(v.Origin, "dhcp-range", append([]string{"set:" + release}, fields...))
}

// extraOpts reads options of dnsmasq, in which ? is the tag of the release.
func (r *reader) extraOpts(d *dnsmasq.Reader, v *migrate.Value) {
	if !v.IsList() && !v.IsNull() {
		r.farm.Close(v.Origin, "extraOpts that are not understood")
	}
	for _, item := range v.List() {
		if !item.IsMap() && !item.IsNull() { // it may have been dhcp-ignore
			r.farm.Close(item.Origin, "an option that is not understood")
		}
		for _, p := range item.Pairs {
			at := p.Value.Origin
			at.Path += " (" + p.Key + ")"
			d.Directive(at, p.Key, strings.Split(strings.ReplaceAll(p.Value.String(), "?", release), ","))
		}
	}
}

func (r *reader) nodes(pool string, v *migrate.Value) {
	for _, item := range v.Items {
		m := migrate.Machine{At: item.Origin, Pool: pool}
		m.Lease = pools.Infinite
		r.farm.Fields(item, migrate.Readers{
			"name": func(v *migrate.Value) { m.Name = v.String() },
			"mac": func(v *migrate.Value) {
				for mac := range strings.SplitSeq(strings.Join(v.Strings(), ","), ",") {
					if mac = strings.TrimSpace(mac); mac != "" {
						m.Hardware = append(m.Hardware, mac)
					}
				}
			},
			"ip": func(v *migrate.Value) {
				if v.String() != "" {
					r.farm.Addresses(&m, v.Origin, v.Strings())
				}
			},
			"clientID": func(v *migrate.Value) { m.Match.ClientID = dnsmasq.ClientID(v.String()) },
			"leaseTime": func(v *migrate.Value) {
				lease, err := dnsmasq.ParseLease(v.String())
				if err != nil {
					r.farm.Unknown(v.Origin, "%v", err)
					return
				}
				m.Lease = lease
			},
		})
		if len(m.Hardware) == 0 {
			r.farm.Bug(item.Origin, "node %s has no mac: there it got no tags; here it gets those of its pool", m.Name)
		}
		r.farm.Add(m)
	}
}

// labelOrder notes labels that several tags of a pool set. There the alphabet decided.
func (r *reader) labelOrder(pool *migrate.Value, tags []string) {
	last := func(order []string) map[string]string {
		by := map[string]string{}
		for _, tag := range order {
			for _, p := range r.pairs("kubernetesLabels", tag) {
				by[p.Key] = tag
			}
		}
		return by
	}
	order := append([]string{allTag}, tags...)
	here := last(order)
	slices.SortStableFunc(order, func(a, b string) int { return strings.Compare(strings.ToUpper(a), strings.ToUpper(b)) })
	there := last(order)
	for _, key := range slices.Sorted(maps.Keys(here)) {
		if here[key] != there[key] {
			r.farm.Bug(pool.Origin, "label %s of tag %q won there, because it comes last in the alphabet; here that of tag %q wins, the last of the list", key, there[key], here[key])
		}
	}
}

func (r *reader) pairs(kind, tag string) []migrate.Pair {
	if v := r.root.Get("tags", kind, tag); v.IsMap() {
		return v.Pairs
	}
	return nil
}
