package importer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"drover/hardware/moonshot"
	"drover/pools"
)

// Kind is the kind of a [Change].
type Kind string

// The kinds of change, each with its mark in a report.
const (
	New        Kind = "new"        // +
	Same       Kind = "same"       // =
	Changed    Kind = "changed"    // ~
	Conflict   Kind = "conflict"   // ! it is not stored
	Missing    Kind = "missing"    // - it is stored, and not in the chassis; it is never deleted
	Incomplete Kind = "incomplete" // ? it has no MAC yet, or its row is not readable; the stored node stays
)

// Mark returns the mark of a kind.
func (k Kind) Mark() string {
	return map[Kind]string{New: "+", Same: "=", Changed: "~", Conflict: "!", Missing: "-", Incomplete: "?"}[k]
}

// Change is the difference between the hardware and the farm for one node.
type Change struct {
	Kind Kind            `json:"kind"`
	Name string          `json:"name"`
	Slot pools.Slot      `json:"slot,omitzero"`
	Old  *pools.PoolNode `json:"old,omitempty"` // as stored; nil: not stored
	New  *pools.PoolNode `json:"new,omitempty"` // to be stored; nil: nothing is stored
	Why  string          `json:"why,omitempty"`
}

// ErrLost is the error for an inventory without most of the stored nodes: a fault of the
// chassis is more likely than the removal of its cartridges.
var ErrLost = errors.New("most of the chassis is missing")

// Stored is the stored nodes for a comparison.
type Stored struct {
	Nodes []pools.NodeInfo

	// Fixed returns the reason why a node cannot be changed, "" when it can be. nil:
	// all nodes can be changed.
	Fixed func(pools.NodeInfo) string
}

// Options are the options of [Namer.Compare].
type Options struct {
	Select pools.Selection
	Prune  bool // mark missing nodes as ignored
	Force  bool // accept an inventory without more than half of the stored nodes
}

// Compare returns the changes from the stored nodes to an inventory. They are
// valid only together: MACs may move between slots.
func (n *Namer) Compare(inv *moonshot.Inventory, stored Stored, o Options) ([]Change, error) {
	imported, err := n.Nodes(inv)
	if err != nil {
		return nil, err
	}
	d := newDiff(stored)
	d.namer = n
	d.keepNames(imported)
	d.compare(imported)
	d.refused(inv)
	if err := d.missing(inv, o); err != nil {
		return nil, err
	}
	slices.SortStableFunc(d.changes, func(a, b Change) int { return a.Slot.Compare(b.Slot) })
	return d.changes, nil
}

// diff is a comparison in progress.
type diff struct {
	namer    *Namer
	whole    bool // the imported nodes have all fields, not only those of a chassis
	stored   Stored
	names    map[pools.Slot]string // of stored nodes with a recorded slot
	byName   map[string]pools.NodeInfo
	address  map[netip.Addr]string   // name of the stored node with the address
	holder   map[pools.MAC]string    // name of the stored node with the MAC
	imported map[string]ImportedNode // by name
	claims   map[pools.MAC][]string  // names of the nodes of the chassis with the MAC
	changes  []Change
}

func newDiff(stored Stored) *diff {
	d := &diff{stored: stored, byName: map[string]pools.NodeInfo{}, address: map[netip.Addr]string{}, holder: map[pools.MAC]string{}, imported: map[string]ImportedNode{}, claims: map[pools.MAC][]string{}}
	for _, s := range stored.Nodes {
		d.byName[s.Name] = s
		if s.IP.IsValid() {
			d.address[s.IP] = s.Name
		}
		for _, m := range s.MACs {
			d.holder[m] = s.Name
		}
	}
	return d
}

// keepNames sets the names of nodes that are stored already. A changed name template is
// for new nodes only.
func (d *diff) keepNames(imported []ImportedNode) {
	d.names = map[pools.Slot]string{}
	for _, s := range d.stored.Nodes {
		if s.ChassisSlot.IsZero() {
			continue
		}
		if slot, ours := d.namer.SlotOf(s); ours {
			d.names[slot] = s.Name
		}
	}
	for i, w := range imported {
		imported[i].Name = d.nameOf(w.Slot)
	}
}

// nameOf returns the stored name of the node in a slot, or else the name of the
// template.
func (d *diff) nameOf(slot pools.Slot) string { return cmp.Or(d.names[slot], d.namer.names[slot]) }

// compare compares all nodes of the hardware.
func (d *diff) compare(imported []ImportedNode) {
	for _, w := range imported {
		d.imported[w.Name] = w
		for _, m := range w.MACs {
			d.claims[m] = append(d.claims[m], w.Name)
		}
	}
	for _, w := range imported {
		d.changes = append(d.changes, d.change(w))
	}
	d.settle()
}

// change compares one node.
func (d *diff) change(w ImportedNode) Change {
	c := Change{Name: w.Name, Slot: w.Slot}
	old, exists := d.byName[w.Name]
	if exists {
		c.Old = &old.PoolNode
	}
	node := w.PoolNode
	if exists {
		node = d.merged(old, w)
	}
	c.New = &node
	switch {
	case len(w.MACs) == 0 && w.Match.IsZero():
		c.Kind, c.New, c.Why = Incomplete, nil, "no network card has a MAC"
		if exists {
			c.Why += ": what is stored stays"
		}
	case d.conflict(w) != "":
		c.Kind, c.New, c.Why = Conflict, nil, d.conflict(w)
	case d.inUse(w, old) != "":
		c.Kind, c.New, c.Why = Conflict, nil, d.inUse(w, old)
	case !exists:
		c.Kind = New
	default:
		c.Why = differences(old.PoolNode, node)
		c.Kind = Changed
		if c.Why == "" {
			c.Kind = Same
		} else if why := d.fixed(old); why != "" {
			c.Kind, c.New, c.Why = Conflict, nil, c.Why+", but "+why
		}
	}
	return c
}

func (d *diff) fixed(n pools.NodeInfo) string {
	if d.stored.Fixed == nil {
		return ""
	}
	return d.stored.Fixed(n)
}

// merged returns a stored node with the fields that the chassis determines. It keeps the
// pool, because the operator may have moved the node.
func (d *diff) merged(old pools.NodeInfo, w ImportedNode) pools.PoolNode {
	if d.whole {
		return w.over(old.PoolNode)
	}
	node := old.PoolNode
	node.MACs = w.MACs
	if !w.ChassisSlot.IsZero() && d.fixed(old) != "" {
		return node // addresses and tags of the file are the operator's
	}
	if w.IP.IsValid() {
		node.IP = w.IP
	}
	if w.Tags != nil && w.ChassisSlot.IsZero() {
		node.Tags = w.Tags
	} else if w.Tags != nil { // an operator may have added tags
		own := slices.DeleteFunc(slices.Clone(old.Tags), func(t string) bool { return slices.Contains(w.Tags, t) })
		node.Tags = slices.Concat(w.Tags, own)
	}
	if !w.ChassisSlot.IsZero() {
		node.ChassisSlot = w.ChassisSlot
	}
	return node
}

// conflict returns the reason why a node cannot have its MACs, "" when it can. A MAC may
// move between slots of this chassis, because cartridges are exchanged.
func (d *diff) conflict(w ImportedNode) string {
	for _, m := range w.MACs {
		if c := d.claims[m]; len(c) > 1 {
			return fmt.Sprintf("MAC %s is of %s in this chassis", m, strings.Join(c, " and "))
		}
		name, held := d.holder[m]
		if !held || name == w.Name {
			continue
		}
		other := d.byName[name]
		next, here := d.imported[name]
		switch {
		case here && len(next.MACs) > 0 && d.fixed(other) == "":
			continue // it gets other MACs in the same change
		case other.Declared():
			return fmt.Sprintf("MAC %s is already that of node %q in %s", m, name, other.Source.Position())
		case here:
			return fmt.Sprintf("MAC %s is already that of node %q, whose own cards have no MAC", m, name)
		case d.ours(name):
			return fmt.Sprintf("MAC %s is already that of node %q, which is not in the chassis any more (remove that node, and import again)", m, name)
		}
		return fmt.Sprintf("MAC %s is already that of node %q", m, name)
	}
	return ""
}

// inUse returns the reason why a node cannot have its name or its address, "" when it
// can: a node outside this comparison has it.
func (d *diff) inUse(w ImportedNode, old pools.NodeInfo) string {
	if at := old.ChassisSlot; !at.IsZero() && !w.ChassisSlot.IsZero() && at != w.ChassisSlot {
		return fmt.Sprintf("node %q is in %s", w.Name, at)
	}
	name, held := d.address[w.IP]
	if _, here := d.imported[name]; !held || here || name == w.Name {
		return ""
	}
	if other := d.byName[name]; other.Declared() {
		return fmt.Sprintf("address %s is already that of node %q in %s", w.IP, name, other.Source.Position())
	}
	return fmt.Sprintf("address %s is already that of node %q", w.IP, name)
}

// ours reports whether a stored node is of this chassis.
func (d *diff) ours(name string) bool {
	if d.namer == nil {
		return false
	}
	_, ok := d.namer.SlotOf(d.byName[name])
	return ok
}

// settle turns a change into a conflict when it needs a MAC of a node that is not
// changed. It repeats that until no further change is affected.
func (d *diff) settle() {
	for again := true; again; {
		again = false
		stays := map[pools.MAC]string{}
		for _, c := range d.changes {
			if c.New == nil && c.Old != nil {
				for _, m := range c.Old.MACs {
					stays[m] = c.Name
				}
			}
		}
		for i, c := range d.changes {
			if c.New == nil || c.Kind == Missing {
				continue
			}
			for _, m := range c.New.MACs {
				if name := stays[m]; name != "" && name != c.Name {
					d.changes[i].Kind, d.changes[i].New = Conflict, nil
					d.changes[i].Why = fmt.Sprintf("MAC %s stays with node %q, which is not changed", m, name)
					again = true
					break
				}
			}
		}
	}
}

// differences returns the differences from a to b as text, "" when there are none.
func differences(a, b pools.PoolNode) string {
	var words []string
	if !slices.Equal(a.MACs, b.MACs) {
		words = append(words, fmt.Sprintf("macs %v -> %v", a.MACs, b.MACs))
	}
	if a.IP != b.IP {
		was := "none"
		if a.IP.IsValid() {
			was = a.IP.String()
		}
		words = append(words, fmt.Sprintf("ip %s -> %s", was, b.IP))
	}
	if !slices.Equal(a.Tags, b.Tags) {
		words = append(words, fmt.Sprintf("tags %v -> %v", a.Tags, b.Tags))
	}
	if a.ChassisSlot != b.ChassisSlot {
		words = append(words, "it is in "+b.ChassisSlot.String())
	}
	if a.IP6 != b.IP6 {
		words = append(words, fmt.Sprintf("ip6 %s -> %s", a.IP6, b.IP6))
	}
	if a.Match != b.Match || a.Ignore != b.Ignore || a.Lease != b.Lease || (a.Power == nil) != (b.Power == nil) {
		words = append(words, "its match, ignore, lease or power")
	}
	if !maps.EqualFunc(a.DHCPOptions, b.DHCPOptions, slices.Equal) {
		words = append(words, "its dhcpOptions")
	}
	return strings.Join(words, ", ")
}

// refused adds a change for each slot whose row was not readable.
func (d *diff) refused(inv *moonshot.Inventory) {
	for _, p := range inv.Problems {
		name, ok := d.nameOf(p.Slot), p.Slot.Valid()
		if !ok || slices.ContainsFunc(d.changes, func(c Change) bool { return c.Slot == p.Slot }) {
			continue // an invalid slot, or one that was reported
		}
		c := Change{Kind: Incomplete, Name: name, Slot: p.Slot, Why: p.Text}
		if old, ok := d.byName[name]; ok {
			c.Old = &old.PoolNode
		}
		d.changes = append(d.changes, c)
	}
}

// missing adds a change for each stored node of this chassis that is not in the
// inventory. It returns [ErrLost] when most of them are missing.
func (d *diff) missing(inv *moonshot.Inventory, o Options) error {
	seen := map[string]bool{}
	for _, c := range d.changes {
		seen[c.Name] = true
	}
	had, lost := 0, 0
	for _, s := range d.stored.Nodes {
		slot, ours := d.namer.SlotOf(s)
		if !ours || !o.Select.Has(slot) {
			continue
		}
		had++
		if seen[s.Name] {
			continue
		}
		lost++
		c := Change{Kind: Missing, Name: s.Name, Slot: slot, Old: &s.PoolNode, Why: "it is not in the chassis"}
		if slices.Contains(inv.Empty, slot) {
			c.Why = "its slot is empty"
		}
		if o.Prune && !s.Ignore && d.fixed(s) == "" {
			gone := s.PoolNode
			gone.Ignore = true
			c.New, c.Why = &gone, c.Why+": it is to be ignored from now on"
		}
		d.changes = append(d.changes, c)
	}
	if lost*2 > had && !o.Force {
		return fmt.Errorf("%w: %s had %d nodes, %d of them are not there (if that is right: --force)", ErrLost, d.namer.chassis.Name, had, lost)
	}
	return nil
}

// NodeChanges returns the changes that are to be stored.
func NodeChanges(changes []Change) (out []pools.NodeChange) {
	for _, c := range changes {
		if c.New != nil && c.Kind != Same {
			out = append(out, pools.NodeChange{Old: c.Old, New: c.New})
		}
	}
	return out
}

// DeclaredElsewhere returns the reason why the API cannot change a node of the config
// file; "" for other nodes.
func DeclaredElsewhere(n pools.NodeInfo) string {
	if !n.Declared() {
		return ""
	}
	return fmt.Sprintf("it is declared in %s: change it there", n.Source.Position())
}
