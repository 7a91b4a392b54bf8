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
	Pool  string // of a node: the pool in whose nodes it is; then List is pools
	Value any    // with the JSON of the element
}

// Edit sets elements in a config file, and returns the file with its comments and the order
// of its keys. An element that is there is replaced; of a pool the nodes stay.
func Edit(file string, data []byte, all []Element) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: keys with values are wanted", file)
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
	case e.Pool != "":
		return setNode(root, e, n)
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
	if nodes := lookup(list.Content[i], "nodes"); nodes != nil && e.List == "pools" {
		*child(n, "nodes", nodes.Kind) = *nodes
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

// setNode sets a node in its pool, and removes it from others.
func setNode(root *yaml.Node, e Element, n *yaml.Node) error {
	list := child(root, "pools", yaml.SequenceNode)
	target := find(list, "name", e.Pool)
	if target < 0 {
		return fmt.Errorf("node %q: there is no pool %q", e.Name, e.Pool)
	}
	for i, p := range list.Content {
		nodes := lookup(p, "nodes")
		if nodes == nil {
			continue
		}
		at := find(nodes, "name", e.Name)
		switch {
		case at < 0:
		case i == target:
			keepComments(nodes.Content[at], n)
			nodes.Content[at] = n
			return nil
		default:
			nodes.Content = slices.Delete(nodes.Content, at, at+1)
		}
	}
	nodes := child(list.Content[target], "nodes", yaml.SequenceNode)
	nodes.Content = append(nodes.Content, n)
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
