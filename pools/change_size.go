package pools

import (
	"fmt"
	"strings"
)

// MaxNamed bounds the names in a [NodeGroup].
const MaxNamed = 5

// NodeGroup is the nodes to which a change does the same.
type NodeGroup struct {
	Count int      `json:"count"`
	Nodes []string `json:"nodes,omitempty"` // the first ones, in natural order
}

// ChangeSize is what a change of the farm does to nodes. A node can be in several groups; one that
// is renamed is removed, and another one is added.
type ChangeSize struct {
	Before      int       `json:"before"`               // nodes of the farm before the change
	Added       NodeGroup `json:"added,omitzero"`       // new nodes
	Removed     NodeGroup `json:"removed,omitzero"`     // nodes that the farm no longer has
	Silenced    NodeGroup `json:"silenced,omitzero"`    // nodes that get no answer any more, as ignore says
	Moved       NodeGroup `json:"moved,omitzero"`       // nodes of another cluster
	Readdressed NodeGroup `json:"readdressed,omitzero"` // nodes with another address, or known by none of the MACs that they had
	Changed     NodeGroup `json:"changed,omitzero"`     // nodes that boot something else, with another image or other settings
	Disrupted   int       `json:"disrupted,omitempty"`  // nodes that are removed, silenced, moved or re-addressed, each counted once
}

// IsZero reports whether the group is empty.
func (g NodeGroup) IsZero() bool { return g.Count == 0 }

// groups are the parts of a size that nodes are counted in, with the word for them.
func (s *ChangeSize) groups() []struct {
	word  string
	group NodeGroup
} {
	return []struct {
		word  string
		group NodeGroup
	}{
		{"added", s.Added},
		{"removed", s.Removed},
		{"silenced", s.Silenced},
		{"moved", s.Moved},
		{"re-addressed", s.Readdressed},
		{"changed", s.Changed},
	}
}

// Counts returns the counts as one line without names: 3 added, 1 moved.
func (s ChangeSize) Counts() string {
	return s.text(func(word string, g NodeGroup) string { return fmt.Sprintf("%d %s", g.Count, word) })
}

// String returns the counts with names: 3 added (m1, m2, m3), 40 removed (n1, n2, ...).
func (s ChangeSize) String() string {
	return s.text(func(word string, g NodeGroup) string {
		names := strings.Join(g.Nodes, ", ")
		if g.Count > len(g.Nodes) {
			names += ", ..."
		}
		return fmt.Sprintf("%d %s (%s)", g.Count, word, names)
	})
}

func (s ChangeSize) text(of func(word string, g NodeGroup) string) string {
	var parts []string
	for _, g := range s.groups() {
		if g.group.Count > 0 {
			parts = append(parts, of(g.word, g.group))
		}
	}
	if len(parts) == 0 {
		return "no node changes"
	}
	return strings.Join(parts, ", ")
}
