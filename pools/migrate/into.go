package migrate

import (
	"bytes"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/pools/hardware/importer"
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
	to, from := old.Content[0], doc.Content[0]
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, v := from.Content[i], from.Content[i+1]
		_, have := value(to, key.Value)
		switch {
		case v.Kind == yaml.MappingNode && key.Value == "tags":
			a.mapping(at(to, key, v), v, "tag")
		case v.Kind == yaml.MappingNode:
			fill(at(to, key, v), v)
		case have == nil || have.Kind != yaml.SequenceNode:
			a.list(at(to, key, v), v, strings.TrimSuffix(key.Value, "s"))
		default:
			a.list(have, v, strings.TrimSuffix(key.Value, "s"))
		}
	}
	return old, a.changes
}

// at returns the value of a key, and adds an empty one of the form of v if there is none.
func at(to, key, v *yaml.Node) *yaml.Node {
	if _, have := value(to, key.Value); have != nil && have.Kind == v.Kind {
		return have
	}
	empty := &yaml.Node{Kind: v.Kind, Tag: v.Tag}
	if _, have := value(to, key.Value); have != nil { // of another form, such as null
		*have = *empty
		return have
	}
	to.Content = append(to.Content, key, empty)
	return empty
}

// fill adds the keys that a mapping does not have.
func fill(to, from *yaml.Node) (added bool) {
	for i := 0; i+1 < len(from.Content); i += 2 {
		if _, have := value(to, from.Content[i].Value); have == nil {
			to.Content = append(to.Content, from.Content[i], from.Content[i+1])
			added = true
		}
	}
	return added
}

// adder adds the parts of a document to another one.
type adder struct {
	changes []Change
}

func (a *adder) note(kind importer.Kind, part, name, text string) {
	a.changes = append(a.changes, Change{kind, part, name, text})
}

// mapping adds the items of a mapping, such as tags.
func (a *adder) mapping(to, from *yaml.Node, part string) {
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, v := from.Content[i], from.Content[i+1]
		_, have := value(to, key.Value)
		if have == nil {
			to.Content = append(to.Content, key, v)
			a.note(importer.New, part, key.Value, "")
			continue
		}
		a.kept(have, v, part, key.Value)
	}
}

// kept notes an item that is there already.
func (a *adder) kept(have, v *yaml.Node, part, name string) {
	text := ""
	if !same(have, v) {
		text = "the file has another one, which stays"
	}
	a.note(importer.Same, part, name, text)
}

// list adds the items of a list, and nodes to the pools that are there.
func (a *adder) list(to, from *yaml.Node, part string) {
	for _, item := range from.Content {
		name := identity(item)
		i := slices.IndexFunc(to.Content, func(x *yaml.Node) bool { return identity(x) == name })
		switch {
		case i < 0:
			to.Content = append(to.Content, item)
			a.note(importer.New, part, name, "")
		case part == "pool":
			a.pool(to.Content[i], item, name)
		default:
			a.kept(to.Content[i], item, part, name)
		}
	}
}

func (a *adder) pool(to, from *yaml.Node, name string) {
	kind := importer.Same
	if fill(to, without(from, "nodes")) {
		kind = importer.Changed
	}
	a.note(kind, "pool", name, "")
	key, nodes := value(from, "nodes")
	if nodes == nil {
		return
	}
	list := at(to, key, nodes)
	for _, node := range nodes.Content {
		i := slices.IndexFunc(list.Content, func(x *yaml.Node) bool { return identity(x) == identity(node) })
		if i < 0 {
			list.Content = append(list.Content, node)
			continue
		}
		follow(list.Content[i], node)
	}
}

// follow sets the fields of a node that the import has.
func follow(to, from *yaml.Node) {
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, v := from.Content[i], from.Content[i+1]
		if _, have := value(to, key.Value); have == nil {
			to.Content = append(to.Content, key, v)
		} else if key.Value == "dhcpOptions" && have.Kind == v.Kind {
			follow(have, v)
		} else if !same(have, v) {
			*have = *v
		}
	}
}

// without returns a mapping without a key.
func without(n *yaml.Node, key string) *yaml.Node {
	out := *n
	out.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			out.Content = append(out.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &out
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
