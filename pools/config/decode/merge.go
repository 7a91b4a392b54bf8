package decode

import "gopkg.in/yaml.v3"

// mergeTag is the tag of the key <<, with which a mapping takes the keys of others that it does
// not have itself (YAML merge keys).
const mergeTag = "!!merge"

// merged returns the keys and values of a mapping, with those that its merge keys bring at the
// end. Of several mappings the first one with a key counts.
func (d *decoder) merged(n *yaml.Node, path string, depth int) []*yaml.Node {
	if !hasMergeKey(n) {
		return n.Content
	}
	var own, sources []*yaml.Node
	has := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == mergeTag {
			sources = append(sources, d.mergeSources(value, path)...)
			continue
		}
		has[key.Value] = true
		own = append(own, key, value)
	}
	if depth > maxDepth { // an alias may refer to what it is in
		d.failf(n, path, "remove the alias that refers to itself", "%s: more than %d merge keys in one another", path, maxDepth)
		d.budget = -1
		return own
	}
	for _, source := range sources {
		more := d.merged(source, path, depth+1)
		if d.spent(n, 1+len(more)/2) {
			return own
		}
		for i := 0; i+1 < len(more); i += 2 {
			if key := more[i]; !has[key.Value] {
				has[key.Value] = true
				own = append(own, key, more[i+1])
			}
		}
	}
	return own
}

func hasMergeKey(n *yaml.Node) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Tag == mergeTag {
			return true
		}
	}
	return false
}

// mergeSources returns the mappings that the value of a merge key names: an alias, a mapping, or a
// list of these.
func (d *decoder) mergeSources(value *yaml.Node, path string) (all []*yaml.Node) {
	values := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		values = value.Content
	}
	for _, v := range values {
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		if v.Kind != yaml.MappingNode {
			d.failf(value, join(path, "<<"), "write <<: *name, or <<: [*name, *other]", "%s: want an alias of keys with values", join(path, "<<"))
			return nil
		}
		all = append(all, v)
	}
	return all
}
