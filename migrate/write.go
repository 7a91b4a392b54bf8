package migrate

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/config/decode"
)

// document returns a config as a YAML document with the comments of the farm.
func (f *Farm) document(c pools.Config) (*yaml.Node, error) {
	doc, err := decode.Document(c)
	if err != nil {
		return nil, err
	}
	root := doc.Content[0]
	dropNulls(root)
	for _, pool := range items(root, "pools") {
		for _, node := range items(pool, "nodes") {
			decode.NodeLine(node)
			plainOptions(node)
		}
	}
	_, tags := value(root, "tags")
	for _, tag := range pairs(tags) {
		plainOptions(tag)
	}
	for _, subnet := range items(root, "subnets") {
		subnet.Style = yaml.FlowStyle
	}
	for _, cm := range append(f.comments, f.toChange(c)...) {
		if key := find(root, cm.path); key != nil {
			key.HeadComment = strings.TrimPrefix(key.HeadComment+"\n"+commented(cm.text), "\n")
		}
	}
	return doc, nil
}

// plainOptions writes DHCP options with one value as plain values.
func plainOptions(n *yaml.Node) {
	_, options := value(n, "dhcpOptions")
	for _, v := range pairs(options) {
		if v.Kind == yaml.SequenceNode && len(v.Content) == 1 {
			*v = *v.Content[0]
		}
	}
}

// toChange returns comments on the values that the other config did not say.
func (f *Farm) toChange(c pools.Config) (all []comment) {
	if len(f.asked.Interfaces) == 0 && !f.served {
		all = append(all, comment{[]string{"server", "interfaces"}, "CHANGE: the network cards that nodes boot from (--interface)."})
	}
	for _, p := range c.Pools {
		if f.asked.Image == "" && p.Image == f.Image && !p.Ignore {
			return append(all, comment{[]string{"pools", p.Name, "image"}, "CHANGE: an image of drover image build (--image)."})
		}
	}
	return all
}

// commented returns a text as lines of a comment.
func commented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight("# "+printable.Text(strings.TrimRight(line, "\n")), " "))
	}
	return strings.Join(lines, "\n")
}

// dropNulls removes keys without a value.
func dropNulls(n *yaml.Node) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i+1].Tag == "!!null" {
			n.Content = slices.Delete(n.Content, i, i+2)
			i -= 2
		}
	}
	for _, c := range n.Content {
		dropNulls(c)
	}
}

// pairs returns the keys and values of a mapping; none of others.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, v *yaml.Node) bool) {
		for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// value returns the value of a key of a mapping, and the key itself; nil if there is none.
func value(n *yaml.Node, key string) (k, v *yaml.Node) {
	for k, v := range pairs(n) {
		if k.Value == key {
			return k, v
		}
	}
	return nil, nil
}

// items returns the items of the list at a key.
func items(n *yaml.Node, key string) []*yaml.Node {
	_, v := value(n, key)
	if v == nil || v.Kind != yaml.SequenceNode {
		return nil
	}
	return v.Content
}

// find returns the node to which a comment belongs: the key, or the item of a list.
func find(n *yaml.Node, path []string) (at *yaml.Node) {
	for _, step := range path {
		switch {
		case n == nil:
			return nil
		case n.Kind == yaml.SequenceNode:
			n = itemLike(n, &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Value: "name"}, {Value: step}}})
			at = n
		default:
			at, n = value(n, step)
		}
	}
	return at
}

// identity returns the text that identifies an item of a list: its name or its network.
func identity(item *yaml.Node) string {
	for _, key := range []string{"name", "cidr"} {
		if _, v := value(item, key); v != nil {
			return v.Value
		}
	}
	return ""
}

// render writes a document as text.
func render(doc *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	err := decode.Write(&b, doc)
	return b.Bytes(), err
}
