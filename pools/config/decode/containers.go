package decode

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/pools/config/mistake"
)

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.failf(n, path, "write it as [a, b] or as lines that start with '- '", "%s: want a list, not a %s", path, kindName(n))
		return
	}
	s := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		at := path
		if !d.inList {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		d.decode(item, s.Index(i), at)
	}
	v.Set(s)
}

func (d *decoder) dict(n *yaml.Node, v reflect.Value, path string) {
	m := reflect.MakeMap(v.Type())
	for k, old := range v.Seq2() {
		m.SetMapIndex(k, old)
	}
	d.pairs(n, path, func(at string, key, value *yaml.Node) {
		if d.removes(value) {
			m.SetMapIndex(reflect.ValueOf(key.Value), reflect.Value{})
			return
		}
		item := reflect.New(v.Type().Elem()).Elem()
		outer := d.inList
		d.inList = outer || item.Kind() == reflect.Slice
		d.decode(value, item, at)
		d.inList = outer
		d.record(at, key)
		m.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
	v.Set(m)
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	fields := map[string]reflect.Value{}
	collectFields(v, fields)
	d.pairs(n, path, func(at string, key, value *yaml.Node) {
		f, ok := fields[key.Value]
		if d.removes(value) {
			if ok {
				f.SetZero()
			}
			return
		}
		if !ok {
			d.failf(key, at, mistake.Hint(key.Value, slices.Sorted(maps.Keys(fields)), "remove it"), "unknown key %q", at)
			return
		}
		d.decode(value, f, at)
		d.record(at, key)
	})
}

// pairs calls each for every key of a mapping, with its path. Duplicate keys are mistakes, and
// long ones.
func (d *decoder) pairs(n *yaml.Node, path string, each func(at string, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.failf(n, path, "write key: value", "%s: want keys with values, not a %s", path, kindName(n))
		return
	}
	content := d.merged(n, path, 0)
	seen := make(map[string]int, len(content)/2)
	for i := 0; i+1 < len(content); i += 2 {
		key, value := content[i], content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.failf(key, path, "write key: value", "%s: a key must be a plain value", path)
			continue
		}
		if n := len(key.Value); n > maxKey || n+len(path) > maxPath {
			d.failf(key, path, "is a quote missing?", "%s: the key %.40q... has %d bytes, more than %d, or %d with the keys around it", path, key.Value, n, maxKey, maxPath)
			continue
		}
		at := join(path, key.Value)
		if line, dup := seen[key.Value]; dup {
			hint := "remove one"
			if !d.json {
				hint = fmt.Sprintf("first set in line %d", line)
			}
			d.failf(key, at, hint, "duplicate key %q", at)
			continue
		}
		seen[key.Value] = key.Line
		each(at, key, value)
	}
}

// collectFields maps the json names of a struct's fields, embedded ones
// included, to the fields.
func collectFields(v reflect.Value, into map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			collectFields(v.Field(i), into)
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			into[name] = v.Field(i)
		}
	}
}

// removes reports whether the value of a key is JSON's null, which removes the old
// value in a merge patch (RFC 7386).
func (d *decoder) removes(value *yaml.Node) bool { return d.json && value.Tag == "!!null" }
