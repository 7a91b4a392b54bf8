package ilo

import (
	"encoding/json"
	"strings"
)

// tree is a JSON document that is asked by name. Firmware leaves out what it
// does not know, writes null for it, and changes the case of names between
// versions; whatever is missing is an empty tree.
type tree struct{ v any }

// UnmarshalJSON reads any document.
func (t *tree) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &t.v) }

// get goes down by names, in any case.
func (t tree) get(names ...string) tree {
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
		t = tree{v}
	}
	return t
}

// list returns the elements of an array.
func (t tree) list() []tree {
	a, _ := t.v.([]any)
	out := make([]tree, len(a))
	for i, v := range a {
		out[i] = tree{v}
	}
	return out
}

// at returns an element of an array.
func (t tree) at(i int) tree {
	if l := t.list(); i < len(l) {
		return l[i]
	}
	return tree{}
}

// text returns a string, without the blanks that firmware pads it with.
func (t tree) text() string {
	s, _ := t.v.(string)
	return strings.TrimSpace(s)
}

// link returns where a reference leads: {"@odata.id": ...} in Redfish,
// {"href": ...} before it.
func (t tree) link() string {
	if s := t.get("@odata.id").text(); s != "" {
		return s
	}
	return t.get("href").text()
}

// members returns the references of a collection, in either flavour.
func (t tree) members() []string {
	var out []string
	for _, list := range []tree{t.get("Members"), t.get("links", "Member")} {
		for _, m := range list.list() {
			if l := m.link(); l != "" {
				out = append(out, l)
			}
		}
	}
	return out
}

// next is the reference to the next page of a collection.
func (t tree) next() string {
	if s := t.get("Members@odata.nextLink").text(); s != "" {
		return s
	}
	return t.get("Members@odata.nextLink").link()
}
