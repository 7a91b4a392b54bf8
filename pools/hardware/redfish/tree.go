package redfish

import (
	"encoding/json"
	"strings"
)

// Tree is a JSON value. Firmware omits fields or writes null, and changes the case of
// names between versions. A missing field is an empty Tree.
type Tree struct{ v any }

// UnmarshalJSON reads any document.
func (t *Tree) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &t.v) }

// Get returns the field at the path of names, ignoring their case.
func (t Tree) Get(names ...string) Tree {
	for _, name := range names {
		m, _ := t.v.(map[string]any)
		v, ok := m[name]
		for key := range m {
			if ok {
				break
			}
			if strings.EqualFold(key, name) {
				v, ok = m[key], true
			}
		}
		t = Tree{v}
	}
	return t
}

// List returns the elements of an array.
func (t Tree) List() []Tree {
	a, _ := t.v.([]any)
	out := make([]Tree, len(a))
	for i, v := range a {
		out[i] = Tree{v}
	}
	return out
}

// at returns the element i of an array; an empty Tree when there is none.
func (t Tree) at(i int) Tree {
	if l := t.List(); i < len(l) {
		return l[i]
	}
	return Tree{}
}

// Text returns a string without the blanks around it; "" for other values.
func (t Tree) Text() string {
	s, _ := t.v.(string)
	return strings.TrimSpace(s)
}

// link returns the path of a reference: {"@odata.id": ...} in Redfish, {"href": ...}
// before Redfish.
func (t Tree) link() string {
	if s := t.Get("@odata.id").Text(); s != "" {
		return s
	}
	return t.Get("href").Text()
}

// members returns the paths in a collection of Redfish, or of the interface before it.
func (t Tree) members() []string {
	var out []string
	for _, list := range []Tree{t.Get("Members"), t.Get("links", "Member")} {
		for _, m := range list.List() {
			if l := m.link(); l != "" {
				out = append(out, l)
			}
		}
	}
	return out
}

// next returns the path of the next page of a collection; "" at the end.
func (t Tree) next() string {
	if s := t.Get("Members@odata.nextLink").Text(); s != "" {
		return s
	}
	return t.Get("Members@odata.nextLink").link()
}
