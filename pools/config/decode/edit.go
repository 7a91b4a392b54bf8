package decode

import (
	"bytes"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"
)

// Element is an element of a config, to be set by [Edit].
type Element struct {
	List  string // key at the top: pools, or tags, which is a map
	Key   string // key that identifies an element of the list: name, cidr
	Name  string // its value; in a map, the key of the element
	Of    string // of a node or host: the pool or cluster that has it; then List is pools or clusters
	Value any    // with the JSON of the element
}

// parts are the keys of the lists in elements that [Edit] keeps: their own elements are set one
// by one.
var parts = map[string]string{"pools": "nodes", "clusters": "hosts"}

// Edit sets elements in a config file, and returns the file with its comments and the order
// of its keys. An element that is there is replaced; of a pool the nodes stay, and of a cluster
// the hosts.
func Edit(file string, data []byte, all []Element) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: want keys with values", file)
	}
	for _, e := range all {
		if err := set(doc.Content[0], e); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

func set(root *yaml.Node, e Element) error {
	value, err := Document(e.Value)
	if err != nil {
		return err
	}
	n := value.Content[0]
	switch {
	case e.Of != "":
		return setPart(root, e, n)
	case e.Key == "":
		m := child(root, e.List, yaml.MappingNode)
		*child(m, e.Name, n.Kind) = *n
		return nil
	}
	list := child(root, e.List, yaml.SequenceNode)
	i := find(list, e.Key, e.Name)
	if i < 0 {
		list.Content = append(list.Content, n)
		return nil
	}
	if part, ok := parts[e.List]; ok {
		keepPart(list.Content[i], n, part)
	}
	keepComments(list.Content[i], n)
	list.Content[i] = n
	return nil
}

// keepComments gives a mapping the comments around the one that it replaces.
func keepComments(old, n *yaml.Node) {
	n.HeadComment, n.FootComment = old.HeadComment, old.FootComment
	if len(old.Content) > 0 && len(n.Content) > 0 {
		n.Content[0].HeadComment = old.Content[0].HeadComment
	}
}

// keepPart gives an element the list of that key of the one that it replaces, with its own on
// top.
func keepPart(old, n *yaml.Node, part string) {
	list := lookup(old, part)
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	if own := lookup(n, part); own != nil {
		for _, o := range own.Content {
			if name := lookup(o, "name"); name != nil {
				setNamed(list, name.Value, o)
			}
		}
	}
	*child(n, part, list.Kind) = *list
}

// setNamed sets the mapping of that name in a list.
func setNamed(list *yaml.Node, name string, n *yaml.Node) {
	i := find(list, "name", name)
	if i < 0 {
		list.Content = append(list.Content, n)
		return
	}
	keepComments(list.Content[i], n)
	list.Content[i] = n
}

// setPart sets a node in its pool, or a host in its cluster. A node leaves other pools; a host
// can be in several clusters.
func setPart(root *yaml.Node, e Element, n *yaml.Node) error {
	list, part := child(root, e.List, yaml.SequenceNode), parts[e.List]
	target := find(list, "name", e.Of)
	if target < 0 {
		return fmt.Errorf("%s %q: there is no %s %q", part[:len(part)-1], e.Name, e.List[:len(e.List)-1], e.Of)
	}
	for i, p := range list.Content {
		if nodes := lookup(p, part); nodes != nil && i != target && e.List == "pools" {
			nodes.Content = slices.DeleteFunc(nodes.Content, func(o *yaml.Node) bool {
				name := lookup(o, "name")
				return name != nil && name.Value == e.Name
			})
		}
	}
	setNamed(child(list.Content[target], part, yaml.SequenceNode), e.Name, n)
	return nil
}

// lookup returns the value of a key of a mapping, or nil.
func lookup(m *yaml.Node, key string) *yaml.Node {
	for i := 0; m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// child returns the value of a key, which it makes if there is none of that kind.
func child(m *yaml.Node, key string, kind yaml.Kind) *yaml.Node {
	v := lookup(m, key)
	if v == nil {
		v = &yaml.Node{}
		m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, v)
	}
	if v.Kind != kind {
		*v = yaml.Node{Kind: kind}
	}
	return v
}

// find returns the index of the mapping in a list that has a value of a key, or -1.
func find(list *yaml.Node, key, value string) int {
	return slices.IndexFunc(list.Content, func(n *yaml.Node) bool {
		v := lookup(n, key)
		return v != nil && v.Value == value
	})
}
