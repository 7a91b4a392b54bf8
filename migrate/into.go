package migrate

import (
	"bytes"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/hardware/importer"
)

// Change is the difference of one part of a config: a subnet, a tag, a pool, a node.
type Change struct {
	Kind importer.Kind `json:"kind"`
	Part string        `json:"part"` // subnet, cluster, tag, pool, node
	Name string        `json:"name"`
	Text string        `json:"text,omitempty"`
}

// String returns the change as one line: "+ tag foo".
func (c Change) String() string {
	line := c.Kind.Mark() + " " + c.Part + " " + c.Name
	if c.Text != "" {
		line += "  " + c.Text
	}
	return line
}

// into adds a document to an older one, and returns what that changes. What is in the older
// one stays as it is, with its comments: only nodes follow the import, in the fields that
// the import sets. A nil older document is an empty one.
func into(old, doc *yaml.Node) (*yaml.Node, []Change) {
	a := &adder{}
	if old == nil {
		old = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	}
	to := old.Content[0]
	for key, v := range pairs(doc.Content[0]) {
		have, part := at(to, key, v), strings.TrimSuffix(key.Value, "s")
		switch {
		case v.Kind == yaml.SequenceNode:
			for _, item := range v.Content {
				a.add(itemLike(have, item), item, part, identity(item), func() { have.Content = append(have.Content, item) })
			}
		case part == "tag":
			for name, tag := range pairs(v) {
				_, there := value(have, name.Value)
				a.add(there, tag, part, name.Value, func() { have.Content = append(have.Content, name, tag) })
			}
		default:
			merge(have, v, "", false)
		}
	}
	return old, a.changes
}

// itemLike returns the item of a list with the name of another one; nil if there is none.
func itemLike(list, item *yaml.Node) *yaml.Node {
	for _, other := range list.Content {
		if identity(other) == identity(item) {
			return other
		}
	}
	return nil
}

// at returns the value of a key, and adds an empty one of the form of v if there is none.
func at(to, key, v *yaml.Node) *yaml.Node {
	_, have := value(to, key.Value)
	if have == nil {
		have = &yaml.Node{}
		to.Content = append(to.Content, key, have)
	}
	if have.Kind != v.Kind { // of another form, such as null
		*have = yaml.Node{Kind: v.Kind, Tag: v.Tag}
	}
	return have
}

// merge adds the keys that a mapping does not have, but for one, and with over replaces the
// values of the others. It reports whether it added some.
func merge(to, from *yaml.Node, but string, over bool) (added bool) {
	for key, v := range pairs(from) {
		_, have := value(to, key.Value)
		switch {
		case key.Value == but:
		case have == nil:
			to.Content = append(to.Content, key, v)
			added = true
		case !over || same(have, v):
		case key.Value == "dhcpOptions" && have.Kind == v.Kind:
			merge(have, v, "", true)
		default:
			*have = *v
		}
	}
	return added
}

// adder adds the parts of a document to another one.
type adder struct {
	changes []Change
}

// add adds an item, or notes that it is there already. Of a pool that is there the nodes follow.
func (a *adder) add(have, item *yaml.Node, part, name string, insert func()) {
	c := Change{importer.Same, part, name, ""}
	key, nodes := value(item, "nodes")
	switch {
	case have == nil:
		insert()
		c.Kind = importer.New
	case part != "pool":
		if !same(have, item) {
			c.Text = "the file has another one, which stays"
		}
	default:
		if merge(have, item, "nodes", false) {
			c.Kind = importer.Changed
		}
		for _, node := range items(item, "nodes") {
			list := at(have, key, nodes)
			if there := itemLike(list, node); there != nil {
				merge(there, node, "", true)
			} else {
				list.Content = append(list.Content, node)
			}
		}
	}
	a.changes = append(a.changes, c)
}

// same reports whether two values are the same, whatever their style and comments.
func same(a, b *yaml.Node) bool { return bytes.Equal(plain(a), plain(b)) }

func plain(n *yaml.Node) []byte {
	var v any
	if n.Decode(&v) != nil {
		return nil
	}
	text, _ := yaml.Marshal(unlisted(v)) // sorts keys
	return text
}

// unlisted returns a value with the item in place of each list of one: DHCP options may be
// written both ways.
func unlisted(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = unlisted(v[i])
		}
		if len(v) == 1 {
			return v[0]
		}
	case map[string]any:
		for key := range v {
			v[key] = unlisted(v[key])
		}
	}
	return v
}
