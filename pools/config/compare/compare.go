// Package compare says what a change of the farm does to its nodes: which ones come and go, move
// to another cluster, get another address, or boot something else.
//
//	size := compare.Farms(before, after).Size()
//
// Nodes are compared by their Plans, so a change of a tag or a pool counts for each node that has
// it. Machines of catch-all pools, which no node declares, are not compared. The package does not
// know why a farm changes, or who decides about it.
package compare

import (
	"net/netip"
	"reflect"
	"slices"

	"drover/internal/natural"
	"drover/pools"
	"drover/pools/resolve"
)

// Change is the difference of two farms. The lists of names are complete, and in natural order.
type Change struct {
	Before int // nodes of the farm before

	Added, Removed, Silenced, Moved, Readdressed, Changed []string
}

// Farms returns what the nodes of a farm get otherwise in another one.
func Farms(before, after *resolve.Farm) *Change {
	old := before.Nodes()
	c := &Change{Before: len(old)}
	k := comparer{before: before, after: after, settings: map[pair]bool{}, options: map[pair]bool{}}
	for i := range old {
		if next, stays := after.Node(old[i].Name); stays {
			k.node(c, &old[i], &next)
		} else {
			c.Removed = append(c.Removed, old[i].Name)
		}
	}
	fresh := after.Nodes()
	for i := range fresh {
		if _, was := before.Node(fresh[i].Name); !was {
			c.Added = append(c.Added, fresh[i].Name)
		}
	}
	for _, names := range [...][]string{c.Added, c.Removed, c.Silenced, c.Moved, c.Readdressed, c.Changed} {
		slices.SortFunc(names, natural.Compare)
	}
	return c
}

// pair is the settings of a node before and after.
type pair [2]*resolve.Settings

// comparer compares nodes. Those with the same tags share their settings, which are compared once.
type comparer struct {
	before, after     *resolve.Farm
	settings, options map[pair]bool // whether they are the same
}

// node compares a node that stays.
func (k *comparer) node(c *Change, old, next *pools.NodeInfo) {
	x, y := planOf(k.before, old), planOf(k.after, next)
	switch {
	case x == nil && y == nil: // it got no answer, and gets none
		return
	case y == nil:
		c.Silenced = append(c.Silenced, old.Name)
		return
	case x == nil:
		c.Changed = append(c.Changed, old.Name)
		return
	}
	if x.Cluster != y.Cluster || x.Gateway != y.Gateway {
		c.Moved = append(c.Moved, old.Name)
	}
	if otherAddress(x.Address, y.Address) || otherAddress(x.Address6, y.Address6) || otherMachine(old, next) {
		c.Readdressed = append(c.Readdressed, old.Name)
	}
	if !k.boots(x, y, old, next) {
		c.Changed = append(c.Changed, old.Name)
	}
}

// anyMAC stands for the MAC of a machine that is known by other things.
var anyMAC = pools.MAC{0x02, 0xff, 0xff, 0xff, 0xff, 0xff}

// planOf returns the plan of a node; nil if its machine gets no answer.
func planOf(f *resolve.Farm, n *pools.NodeInfo) *resolve.Plan {
	if len(n.MACs) > 0 {
		return f.Resolve(resolve.Query{MAC: n.MACs[0]}) // as HTTP: a further match counts for DHCP alone
	}
	return f.ResolveLeased(resolve.Query{MAC: anyMAC}, pools.Lease{Node: n.Name})
}

// otherAddress reports whether an address that was there is another one, or gone.
func otherAddress(old, next netip.Addr) bool { return old.IsValid() && old != next }

// otherMachine reports whether the machines that were a node are so no more.
func otherMachine(old, next *pools.NodeInfo) bool {
	if len(old.MACs) == 0 {
		return len(next.MACs) == 0 && old.Match != next.Match
	}
	return !slices.ContainsFunc(old.MACs, func(m pools.MAC) bool { return slices.Contains(next.MACs, m) })
}

// boots reports whether two plans of a node boot the same.
func (k *comparer) boots(x, y *resolve.Plan, old, next *pools.NodeInfo) bool {
	return x.Image == y.Image && x.Pool == y.Pool && x.Lease == y.Lease && x.Broadcast == y.Broadcast && x.DiskChange == y.DiskChange && x.Boot == y.Boot &&
		slices.Equal(old.MACs, next.MACs) && old.Match == next.Match &&
		x.Address.IsValid() == y.Address.IsValid() && x.Address6.IsValid() == y.Address6.IsValid() &&
		reflect.DeepEqual(x.Subnet, y.Subnet) && k.sameSettings(x, y) && k.sameOptions(x, y)
}

func (k *comparer) sameSettings(x, y *resolve.Plan) bool {
	p := pair{x.Shared(), y.Shared()}
	same, known := k.settings[p]
	if !known {
		same = reflect.DeepEqual(p[0], p[1])
		k.settings[p] = same
	}
	return same
}

func (k *comparer) sameOptions(x, y *resolve.Plan) bool {
	compare := func() bool {
		return reflect.DeepEqual(x.Options, y.Options) && reflect.DeepEqual(x.Options6, y.Options6)
	}
	if x.OwnOptions() || y.OwnOptions() {
		return compare()
	}
	p := pair{x.Shared(), y.Shared()}
	same, known := k.options[p]
	if !known {
		same = compare()
		k.options[p] = same
	}
	return same
}

// Size returns the counts of the change, with a few names of each kind.
func (c *Change) Size() pools.ChangeSize {
	group := func(names []string) pools.NodeGroup {
		return pools.NodeGroup{Count: len(names), Nodes: slices.Clone(names[:min(len(names), pools.MaxNamed)])}
	}
	return pools.ChangeSize{
		Before: c.Before, Disrupted: c.disrupted(),
		Added: group(c.Added), Removed: group(c.Removed), Silenced: group(c.Silenced),
		Moved: group(c.Moved), Readdressed: group(c.Readdressed), Changed: group(c.Changed),
	}
}

// disrupted returns how many nodes are removed, silenced, moved or re-addressed.
func (c *Change) disrupted() int {
	all := map[string]bool{}
	for _, names := range [...][]string{c.Removed, c.Silenced, c.Moved, c.Readdressed} {
		for _, name := range names {
			all[name] = true
		}
	}
	return len(all)
}
