package resolve

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"drover/pools"
	"drover/pools/option"
)

// profile is the result of merging a list of tags. Nodes with the same tags share one
// profile.
type profile struct {
	Settings
	optionSet optionSet // the parts of options
	options   []Option
	options6  []Option6
	loaders   []*matcher // the conditions of Settings.Loaders
	why       Why
}

// tagOrder returns the tags in the order in which they apply: all, those of the pool,
// those of the node. A tag of both applies once, with the pool.
func tagOrder(pool, node []string) []string {
	tags := append([]string{"all"}, pool...)
	for _, t := range node {
		if !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	return tags
}

// merge merges tags. The later tag wins key by key in maps. Lists and kernel arguments
// append, unless they are written with replace.
func (f *Farm) merge(tags []string) *profile {
	m := &merger{farm: f, profile: &profile{why: Why{}, optionSet: optionSet{}}}
	for _, name := range tags {
		t, ok := f.Config.Tags[name]
		if !ok {
			continue // only "all" may be missing
		}
		m.path = "tags." + name
		m.boot(t)
		s := &m.profile.Settings
		override(m, "timezone", &s.Timezone, t.Timezone)
		s.SSHAuthorizedKeys = mergeList(m, "sshAuthorizedKeys", s.SSHAuthorizedKeys, t.SSHAuthorizedKeys, func(k string) string { return k })
		s.Modules = mergeList(m, "modules", s.Modules, t.Modules, func(k string) string { return k })
		s.Mounts = mergeList(m, "mounts", s.Mounts, t.Mounts, func(v pools.Mount) string { return v.Path })
		s.Disks = mergeList(m, "disks", s.Disks, t.Disks, func(d pools.Disk) string { return d.Name })
		override(m, "zram", &s.Zram, t.Zram)
		s.Taints = mergeList(m, "taints", s.Taints, t.Taints, func(v pools.Taint) string { return v.Key + ":" + v.Effect })
		s.Sysctls = mergeMap(m, "sysctls", s.Sysctls, t.Sysctls)
		s.Files = mergeMap(m, "files", s.Files, t.Files)
		s.Units = mergeMap(m, "units", s.Units, t.Units)
		s.Scripts = mergeMap(m, "scripts", s.Scripts, t.Scripts)
		s.Loaders = mergeList(m, "loaders", s.Loaders, t.Loaders, func(r pools.LoaderRule) string { return fmt.Sprint(r.Match()) })
		if t.MenuTimeout != nil {
			s.MenuTimeout = *t.MenuTimeout
			m.note("menuTimeout", ".menuTimeout")
		}
		override(m, "uboot.wrap", &s.UBoot.Wrap, t.UBoot.Wrap)
		override(m, "uboot.load", &s.UBoot.Load, t.UBoot.Load)
		override(m, "uboot.entry", &s.UBoot.Entry, t.UBoot.Entry)
		override(m, "uboot.fdt", &s.UBoot.FDT, t.UBoot.FDT)
		s.Labels = mergeMap(m, "labels", s.Labels, t.Labels)
		s.KubeletArgs = mergeMap(m, "kubeletArgs", s.KubeletArgs, t.KubeletArgs)
		m.system(t)
	}
	m.swap()
	m.profile.options, m.profile.options6 = m.profile.optionSet.options(), m.profile.optionSet.options6()
	for _, r := range m.profile.Loaders {
		m.profile.loaders = append(m.profile.loaders, newMatcher(r.Match()))
	}
	return m.profile
}

// swap lets the kubelet run on a node with swap, unless the operator has said what it does.
// It would refuse to start.
func (m *merger) swap() {
	const arg = "fail-swap-on"
	s := &m.profile.Settings
	origin := "zram"
	for i, d := range s.Disks {
		if slices.ContainsFunc(d.Partitions, func(p pools.Partition) bool { return p.Kind() == pools.Swap }) {
			origin = fmt.Sprintf("disks[%d]", i)
		}
	}
	if _, said := s.KubeletArgs[arg]; said || s.Zram == "" && origin == "zram" {
		return
	}
	if s.KubeletArgs == nil {
		s.KubeletArgs = map[string]string{}
	}
	s.KubeletArgs[arg] = "false"
	m.profile.why["kubeletArgs."+arg] = m.profile.why[origin]
}

// merger is a merge in progress.
type merger struct {
	farm    *Farm
	profile *profile
	path    string // of the current tag, "tags.foo"
}

// note records that a field of the Plan was set at a path below the tag.
func (m *merger) note(field, path string) { m.profile.why[field] = m.farm.at(m.path + path) }

func (m *merger) boot(t pools.Tag) {
	if k := t.KernelArgs; !k.IsZero() {
		args := &m.profile.KernelArgs
		if k.Replace {
			forget(m.profile.why, "kernelArgs", len(*args))
			*args = nil
		}
		for _, w := range k.Args {
			m.note(fmt.Sprintf("kernelArgs[%d]", len(*args)), ".kernelArgs")
			*args = append(*args, w)
		}
	}
	m.profile.optionSet = m.profile.optionSet.with(t.DHCPOptions)
	for _, key := range slices.Sorted(maps.Keys(t.DHCPOptions)) {
		m.note(option.Field(key), ".dhcpOptions."+key)
	}
}

// system merges the settings of the node's operating system that kubefarm had, too.
func (m *merger) system(t pools.Tag) {
	s := &m.profile.Settings
	same := func(k string) string { return k }
	s.Hosts = mergeMap(m, "hosts", s.Hosts, t.Hosts)
	s.Env = mergeMap(m, "env", s.Env, t.Env)
	s.DNS = mergeList(m, "dns", s.DNS, t.DNS, netip.Addr.String)
	s.Search = mergeList(m, "search", s.Search, t.Search, same)
	s.Cron = mergeList(m, "cron", s.Cron, t.Cron, same)
	s.MaskUnits = mergeList(m, "maskUnits", s.MaskUnits, t.MaskUnits, same)
	override(m, "rootPasswordHash", &s.RootPasswordHash, t.RootPasswordHash)
	override(m, "debugShell", &s.DebugShell, t.DebugShell)
	if len(t.Network) > 0 {
		s.Network = s.Network.With(t.Network)
		m.note("network", ".network")
	}
}

// override sets a value if the tag has one.
func override[T comparable](m *merger, field string, into *T, v T) {
	var none T
	if v != none {
		*into = v
		m.note(field, "."+field)
	}
}

func mergeMap[V any](m *merger, field string, into, from map[string]V) map[string]V {
	if len(from) == 0 {
		return into
	}
	if into == nil {
		into = make(map[string]V, len(from))
	}
	for k, v := range from {
		into[k] = v
		m.note(field+"."+k, "."+field+"."+k)
	}
	return into
}

// mergeList appends the items of a list. An item with the id of an earlier one replaces
// it.
func mergeList[T any](m *merger, field string, into []T, from pools.List[T], id func(T) string) []T {
	if from.Replace {
		forget(m.profile.why, field, len(into))
		into = nil
	}
	for i, v := range from.Items {
		at := slices.IndexFunc(into, func(x T) bool { return id(x) == id(v) })
		if at < 0 {
			at = len(into)
			into = append(into, v)
		}
		into[at] = v
		m.note(fmt.Sprintf("%s[%d]", field, at), fmt.Sprintf(".%s[%d]", field, i))
	}
	return into
}

// forget drops the origins of a list that is replaced.
func forget(why Why, field string, n int) {
	for i := range n {
		delete(why, fmt.Sprintf("%s[%d]", field, i))
	}
}
