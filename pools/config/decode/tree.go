package decode

import "gopkg.in/yaml.v3"

// Bounds of a [pools.Tree]: its levels, of which netplan needs six, and the share of the
// budget that each of its values takes.
const (
	maxDepth = 16
	treeCost = 32
)

// tree returns the value of a [pools.Tree]: all of it as it was written, in maps, lists and
// strings.
func (d *decoder) tree(n *yaml.Node, path string, depth int) any {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case d.spent(n, treeCost):
		return ""
	case depth > maxDepth: // an alias may refer to what it is in
		d.failf(n, path, "remove the alias that refers to itself", "%s: more than %d levels", path, maxDepth)
		d.budget = -1
		return ""
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		d.pairs(n, path, func(at string, key, value *yaml.Node) {
			m[key.Value] = d.tree(value, at, depth+1)
			d.record(at, key)
		})
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		outer := d.inList
		d.inList = true
		for i, item := range n.Content {
			list[i] = d.tree(item, path, depth+1)
		}
		d.inList = outer
		return list
	}
	s, _ := d.scalar(n, path, false)
	return s
}
