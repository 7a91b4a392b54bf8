package migrate

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/pools"
)

// claim is a note that an option was taken over. It holds if one of the paths of the config has
// the values.
type claim struct {
	note   int // in Notes
	scope  *Scope
	key    string // of dhcpOptions, with a scope
	paths  []string
	values []string
}

// Taken notes that an option was taken over, as the values at a path of the config:
// tags.red.labels, or subnets[].dns for one of several. A remark may follow the path behind a
// semicolon. If the config that is written does not have it, the note says so.
func (f *Farm) Taken(at pools.Origin, path string, values ...any) { f.taken(at, path, true, values) }

// TakenSecret notes the same of values that the report does not show.
func (f *Farm) TakenSecret(at pools.Origin, path string, values ...any) {
	f.taken(at, path, false, values)
}

func (f *Farm) taken(at pools.Origin, path string, show bool, values []any) {
	c := claim{note: len(f.Notes)}
	for _, v := range values {
		c.values = append(c.values, fmt.Sprint(v))
	}
	where, remark, _ := strings.Cut(path, ";")
	c.paths = []string{where}
	text := where
	if show && len(values) > 0 {
		text += ": " + strings.Join(c.values, ", ")
	}
	if remark != "" {
		text += ";" + remark
	}
	f.claims = append(f.claims, c)
	f.note(Taken, at, "%s", text)
}

// takenOption notes that an option of a scope was taken over.
func (f *Farm) takenOption(s *Scope, at pools.Origin, key string, values []string) {
	f.claims = append(f.claims, claim{note: len(f.Notes), scope: s, key: key, values: values})
	name := s.Name
	if s.machine != nil {
		name += " " + s.machine.String()
	}
	f.note(Taken, at, "%s: dhcpOptions.%s", name, key)
}

// places returns where the option of a scope may be in the config.
func (s *Scope) places(key string) (all []string) {
	field := map[string]string{"router": "router", "dns-server": "dns", "domain-name": "domain"}[key]
	for _, home := range s.homes {
		all = append(all, home+".dhcpOptions."+key)
		if field != "" && strings.HasPrefix(home, "subnets") {
			all = append(all, home+"."+field)
		}
	}
	for _, heir := range s.heirs {
		all = append(all, heir.places(key)...)
	}
	return all
}

// Source adds a leaf of the other config: every leaf is in the config that is written, or in the
// report.
func (f *Farm) Source(at pools.Origin, text string) {
	f.leaves = append(f.leaves, Note{Origin: at, Text: text})
}

// SourceTree adds the leaves of a file.
func (f *Farm) SourceTree(root *Value) {
	root.Leaves(func(v *Value) {
		if v.Line > 0 && v.IsPlain() && v.Text != "" {
			f.Source(v.Origin, v.Text)
		}
	})
}

// verify compares the notes with the config that is written.
func (f *Farm) verify(doc *yaml.Node) {
	texts := map[string][]string{}
	for i := range f.claims {
		c := &f.claims[i]
		if c.scope != nil {
			c.paths = c.scope.places(c.key)
		}
		for _, p := range c.paths {
			texts[p] = nil
		}
	}
	if len(doc.Content) > 0 {
		index(doc.Content[0], []string{""}, texts)
	}
	for _, c := range f.claims {
		if n := &f.Notes[c.note]; !slices.ContainsFunc(c.paths, func(p string) bool { return holds(texts[p], c.values) }) {
			n.Kind, n.Text = NotTaken, n.Text+": the config that is written does not have it"
		}
	}
	f.account(doc)
}

// index collects the plain values below each path that is a key of texts, and returns those
// below a node, which has several paths: items of lists by their names, and as [].
func index(n *yaml.Node, paths []string, texts map[string][]string) (all []string) {
	switch n.Kind {
	case yaml.ScalarNode:
		all = []string{n.Value}
	case yaml.MappingNode:
		for key, v := range pairs(n) {
			var inner []string
			for _, p := range paths {
				inner = append(inner, join(p, key.Value))
			}
			all = append(append(all, key.Value), index(v, inner, texts)...)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			var inner []string
			for _, p := range paths {
				inner = append(inner, p+"[]")
				if name := identity(item); name != "" {
					inner = append(inner, p+"."+name)
				}
			}
			all = append(all, index(item, inner, texts)...)
		}
	}
	for _, p := range paths {
		if had, ok := texts[p]; ok {
			texts[p] = append(append(had, "is there"), all...)
		}
	}
	return all
}

// holds reports whether texts have all of the values.
func holds(texts, values []string) bool {
	for _, want := range values {
		if !slices.ContainsFunc(texts, func(text string) bool {
			return strings.EqualFold(text, want) || slices.Contains(strings.Fields(text), want) || len(want) > 3 && strings.Contains(strings.ToLower(text), strings.ToLower(want))
		}) {
			return false
		}
	}
	return len(texts) > 0
}
