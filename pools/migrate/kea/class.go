package kea

import (
	"net/netip"
	"regexp"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
	"drover/pools/migrate/classes"
)

// class is a client class.
type class struct {
	matches []pools.Match // one of them is enough
	known   bool          // the test is one that drover has
	scope   migrate.Scope
}

var (
	vendorClass = regexp.MustCompile(`^substring\(option\[(?:60|vendor-class-identifier)\]\.(?:hex|text), *0, *(?:\d+|all)\) *== *'([^']*)'$`)
	wholeClass  = regexp.MustCompile(`^option\[(?:60|vendor-class-identifier)\]\.(?:hex|text) *== *'([^']*)'$`)
	arch        = regexp.MustCompile(`^option\[(?:93|client-system)\]\.hex *== *0x([0-9a-fA-F]{1,4})$`)
	userClass   = regexp.MustCompile(`^(?:substring\()?option\[(?:77|user-class)\]\.(?:hex|text)(?:, *\d+, *(?:\d+|all)\))? *== *'([^']*)'$`)
	ipxe        = regexp.MustCompile(`^option\[175\]\.exists$`)
)

// clientClasses reads the classes. Their boot files are rules of loaders for all nodes.
func (r *reader) clientClasses(list *migrate.Value) {
	f := r.farm
	if !list.IsList() {
		return
	}
	for _, v := range list.Items {
		c := class{}
		c.matches, c.known = classes.Matches(v.Get("test").String(), single)
		readers := r.common(&c.scope)
		c.scope.Name = "class " + v.Get("name").String()
		file, server := "", netip.Addr{}
		readers["boot-file-name"] = func(v *migrate.Value) { file = v.String() }
		readers["next-server"] = func(v *migrate.Value) { server = address(v.String()) }
		readers["name"], readers["test"] = migrate.Skip, migrate.Skip
		for _, key := range []string{"option-def", "only-if-required", "only-in-additional-list", "valid-lifetime", "server-hostname", "min-valid-lifetime", "max-valid-lifetime"} {
			readers[key] = f.NoCounterpart("a detail of a class (lease: of the pool that has its match)")
		}
		readers["template-test"] = f.NoCounterpart("classes that a template makes")
		readers["option-data"] = func(v *migrate.Value) {
			r.options(&c.scope, v)
		}
		f.Fields(v, readers)
		name := v.Get("name").String()
		r.classes[name] = c
		switch {
		case file != "" && c.known:
			if server.IsUnspecified() {
				server = netip.Addr{}
			}
			for _, m := range c.matches {
				f.Loader(&f.Global, v.Origin, pools.LoaderRule{Arch: m.Arch, Class: m.Class, UserClass: m.UserClass, Loader: file, Server: server})
			}
		case !c.known && v.Get("test").String() != "":
			f.Lost(v.Origin, "class %q: its test is no match of drover (class, userClass, arch): what depends on it is left", name)
		default:
			f.Taken(v.Origin, "class %q, where a pool or a machine names it", name)
		}
	}
}

// single returns the match for a test without "and" and "or".
func single(test string) (m pools.Match, ok bool) {
	if found := vendorClass.FindStringSubmatch(test); found != nil {
		return pools.Match{Class: found[1] + "*"}, true
	}
	if found := wholeClass.FindStringSubmatch(test); found != nil {
		return pools.Match{Class: found[1]}, true
	}
	if found := userClass.FindStringSubmatch(test); found != nil {
		return pools.Match{UserClass: found[1]}, true
	}
	if found := arch.FindStringSubmatch(test); found != nil {
		ok = m.Arch.UnmarshalText([]byte("0x"+found[1])) == nil
		return m, ok
	}
	return pools.Match{UserClass: "iPXE"}, ipxe.MatchString(test)
}

// match returns the match of the classes of a subnet or a pool.
func (r *reader) match(v *migrate.Value) (m pools.Match) {
	for _, name := range v.Strings() {
		switch c := r.classes[name]; {
		case name == "UNKNOWN" || name == "ALL" || name == "":
		case c.known:
			m = c.matches[0]
			if len(c.matches) > 1 {
				r.farm.LeftOut(v.Origin, "class %q has several alternatives, and a pool one match: this is for the first of them (write a pool for each)", name)
			}
			r.farm.Taken(v.Origin, "match of the catch-all pool: class %q", name)
		case strings.HasPrefix(name, "VENDOR_CLASS_"):
			m.Class = strings.TrimPrefix(name, "VENDOR_CLASS_")
			r.farm.Taken(v.Origin, "match of the catch-all pool: class %q", m.Class)
		default:
			r.farm.Lost(v.Origin, "class %q is no match of drover: the pool is for all unknown machines", name)
		}
	}
	return m
}
