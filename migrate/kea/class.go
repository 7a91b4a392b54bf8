package kea

import (
	"slices"
	"strings"

	"drover/migrate"
)

// members reads the classes whose members a network or a pool is for. Kea makes some itself.
func (r *reader) members(l *level, v *migrate.Value) {
	names := slices.DeleteFunc(v.Strings(), func(name string) bool { return name == "" })
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "KNOWN" })
	switch {
	case v.IsMap() || slices.ContainsFunc(v.List(), func(v *migrate.Value) bool { return !v.IsPlain() }):
		l.access.Closed = "classes that are not understood"
		r.farm.Unknown(v.Origin, "names of classes are expected here")
	case len(names) == 0 || slices.Contains(names, "ALL") || slices.Contains(names, "UNKNOWN"):
		l.access.Unnamed = l.access.Unnamed || len(names) == 1 && names[0] == "UNKNOWN"
		r.farm.Itself(v.Origin, "unknown machines may lease, as from every catch-all pool")
	case len(others) == 0:
		l.access.Known = true
		r.farm.Itself(v.Origin, "it is for machines with a reservation: nodes have fixed addresses")
	default:
		l.access.Closed = "class " + strings.Join(others, ", ")
		r.farm.NotTaken(v.Origin, "class %s: drover's match of a catch-all pool has a form of its own", strings.Join(others, ", "))
	}
}

// context reads what Kea hands to its hooks: the one of limits bounds leases.
func (r *reader) context(l *level, v *migrate.Value) {
	if !v.IsMap() && !v.IsNull() {
		l.access.Closed = "user-context" // it may have been limits
		r.farm.Unknown(v.Origin, "keys with values are expected here")
	}
	for _, p := range v.Pairs {
		if p.Key == "limits" {
			l.access.Closed = "limits"
		}
		r.farm.NotTaken(p.Value.Origin, "it is for the hooks of Kea")
	}
}

// classes reads the classes. None is taken over; the one called DROP, and limits, are for all
// machines.
func (r *reader) classes(list *migrate.Value) {
	if !list.IsList() && !list.IsNull() {
		r.farm.Close(list.Origin, "classes that are not understood")
	}
	for _, v := range list.List() {
		if context := v.Get("user-context"); !v.Get("name").IsPlain() || !context.IsMap() && !context.IsNull() {
			r.farm.Close(v.Origin, "a class that is not understood")
		}
	}
	r.farm.Each(list, func(v *migrate.Value) {
		name := v.Get("name").String()
		switch {
		case name == "DROP":
			r.farm.Close(v.Origin, "class DROP")
		case v.Get("user-context", "limits") != nil:
			r.farm.Close(v.Origin, "limits of class "+name)
		}
		for _, p := range v.Pairs {
			switch p.Key {
			case "boot-file-name":
				r.farm.BootFile(p.Value.Origin, p.Value.String())
			case "next-server", "server-hostname":
				r.farm.BootServer(p.Value.Origin, p.Value.String())
			case "option-data":
				r.options(&migrate.Scope{Class: name}, p.Value)
			default:
				r.farm.NotTaken(p.Value.Origin, "class %q: drover chooses loaders by firmware, and has options by node, network, tag and pool", name)
			}
		}
	})
}
