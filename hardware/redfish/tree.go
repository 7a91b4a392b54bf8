package redfish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"drover/internal/printable"
)

// Tree is a JSON value. Firmware omits fields or writes null, and changes the case of
// names between versions. A missing field is an empty Tree.
type Tree struct{ v any }

// UnmarshalJSON reads any document.
func (t *Tree) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &t.v) }

// Bounds of a document.
const (
	maxValues = 1 << 15 // a value in memory may take a hundred times the bytes of its JSON
	maxText   = 2 << 10 // bytes of a text
)

// decode decodes an answer.
func decode(data []byte, out any) error {
	values := 0
	for _, c := range data {
		if c == '{' || c == '[' || c == ',' {
			values++
		}
	}
	if values > maxValues {
		return fmt.Errorf("it has more than %d values", maxValues)
	}
	return json.Unmarshal(data, out)
}

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

// Text returns a string in printable characters, without the blanks around it; "" for
// other values.
func (t Tree) Text() string { return printable.Line(t.raw(), maxText) }

func (t Tree) raw() string {
	s, _ := t.v.(string)
	return strings.TrimSpace(s)
}

// link returns the path of a reference: {"@odata.id": ...} in Redfish, {"href": ...}
// before Redfish.
func (t Tree) link() string {
	return cmp.Or(t.Get("@odata.id").raw(), t.Get("href").raw())
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
	next := t.Get("Members@odata.nextLink")
	return cmp.Or(next.raw(), next.link())
}
