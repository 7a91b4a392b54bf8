package kea

import (
	"cmp"
	"slices"
	"strings"

	"drover/migrate"
)

// members reads the classes whose members a network or a pool is for. Kea makes some itself.
func (r *reader) members(l *level, v *migrate.Value) {
	names := slices.DeleteFunc(v.Strings(), func(name string) bool { return name == "" })
	has := func(name string) bool { return slices.Contains(names, name) }
	switch {
	case v.IsMap() || slices.ContainsFunc(v.List(), func(v *migrate.Value) bool { return !v.IsPlain() }):
		l.access.Closed = "classes that are not understood"
		r.farm.Unknown(v.Origin, "names of classes are expected here")
	case len(names) == 0 || has("ALL") || has("UNKNOWN"):
		l.access.Unnamed = l.access.Unnamed || has("UNKNOWN") && !has("ALL") && !has("KNOWN")
		r.farm.Itself(v.Origin, "unknown machines may lease, as from every catch-all pool")
	case !slices.ContainsFunc(names, func(name string) bool { return name != "KNOWN" }):
		l.access.Known = true
		r.farm.Itself(v.Origin, "it is for machines that the config names: nodes have fixed addresses")
	default:
		l.access.Closed = cmp.Or(l.access.Closed, "class "+strings.Join(names, ", "))
		r.farm.NotTaken(v.Origin, "class %s: drover's match of a catch-all pool has a form of its own", strings.Join(names, ", "))
	}
}

// limits reads what Kea hands to its hooks: that of limits bounds leases.
func (r *reader) limits(l *level, v *migrate.Value) {
	if v.Get("limits") != nil || !v.IsMap() && !v.IsNull() {
		l.access.Closed = "limits in user-context"
	}
	r.farm.NotTaken(v.Origin, "it is for the hooks of Kea")
}

// classes lists the classes. None is taken over; the one called DROP, limits, and those that are
// not understood, are for all machines.
func (r *reader) classes(list *migrate.Value) {
	if !list.IsList() && !list.IsNull() {
		r.farm.Close(list.Origin, "classes that are not understood")
	}
	for _, v := range list.List() {
		name, context := v.Get("name"), v.Get("user-context")
		if !name.IsPlain() || name.String() == "DROP" || context.Get("limits") != nil || !context.IsMap() && !context.IsNull() {
			r.farm.Close(v.Origin, "class "+name.String())
		}
		r.farm.NotTaken(v.Origin, "class %q: drover chooses loaders by firmware, and has options by node, network, tag and pool", name)
	}
}
