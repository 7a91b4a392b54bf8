// Package decode reads the operator's file and the bodies of the REST API into structs, by
// their json tags: strictly, and with all mistakes at once, as [mistake.Errors]. It writes
// values as YAML, too.
//
// It does not know the keys of a config and the meaning of its values.
package decode

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/pools"
	"drover/pools/config/mistake"
)

// maxNodes bounds the number of values in a config, with its aliases unfolded: 10 000
// machines with two MACs each need about 70 000. The types bound the depth.
const maxNodes = 1 << 20

// maxSeparators bounds the commas and lines of a config, which bound its values before it
// is parsed: each value takes 200 bytes of memory. 10 000 machines need 40 000.
const maxSeparators = 1 << 19

// maxKey bounds a key, in bytes, and maxPath the path of a key, which is kept with its line. The
// longest keys are paths of files.
const (
	maxKey  = 1 << 10
	maxPath = 2 << 10
)

// decoder reads YAML into a struct by its json tags, strictly and totally: it
// goes on after a mistake and reports them all. It remembers the line of every
// value by its path ("pools[0].nodes[2].ip").
type decoder struct {
	file   string
	json   bool // the input is JSON: strings are quoted, and null removes a value
	lines  map[string]int
	errs   mistake.Errors
	more   int // mistakes of JSON behind the first ones
	budget int
	inList bool // of a free-form map, whose items have the path of the list and no line
}

// YAML reads the one document in data into v, a pointer to a struct. Its errors call it
// file. lines are the lines of the values by their paths ("pools[0].nodes[2].ip"); none
// when data is not a YAML mapping.
func YAML(file string, data []byte, v any) (lines map[string]int, errs mistake.Errors) {
	return new(Reader).YAML(file, data, v)
}

// Reader reads the files of one config. The bounds of a config are those of all of them
// together.
type Reader struct {
	// MayBeEmpty says that a file without a document is no mistake.
	MayBeEmpty bool

	values, separators int // that were read
}

// YAML is the function [YAML] for one of the files.
func (r *Reader) YAML(file string, data []byte, v any) (lines map[string]int, errs mistake.Errors) {
	d := &decoder{file: file, lines: map[string]int{}, budget: maxNodes - r.values}
	r.separators += bytes.Count(data, []byte(",")) + bytes.Count(data, []byte("\n"))
	if r.separators > maxSeparators {
		d.failf(firstLine, "", "10 000 machines need 40 000", "the config has %d commas and lines, more than %d", r.separators, maxSeparators)
		return d.lines, d.errs
	}
	d.document(data, v, r.MayBeEmpty)
	r.values = maxNodes - d.budget
	return d.lines, d.errs
}

func (d *decoder) document(data []byte, v any, mayBeEmpty bool) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		if !mayBeEmpty {
			d.failf(firstLine, "", "see the README for one to copy", "the config is empty")
		}
		return
	case err != nil:
		d.syntaxError(err)
		return
	}
	if err := dec.Decode(&second); err == nil {
		d.failf(&second, "", "one file holds one config: remove the '---' and what follows", "a second YAML document")
	} else if !errors.Is(err, io.EOF) {
		d.syntaxError(err)
	}
	if root := doc.Content[0]; root.Kind != yaml.MappingNode {
		d.failf(root, "", "see the README for one to copy", "the config: want keys with values, not a %s", kindName(root))
	} else {
		d.decode(root, reflect.ValueOf(v).Elem(), "")
	}
}

// firstLine is the place of mistakes that are of no value.
var firstLine = &yaml.Node{Line: 1}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntaxError turns "yaml: line 3: mapping values are not allowed" into a mistake
// with a line.
func (d *decoder) syntaxError(err error) {
	if all, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, text := range all.Errors {
			d.syntaxError(errors.New("yaml: " + text))
		}
		return
	}
	at, msg, hint := *firstLine, err.Error(), "mind the indentation and the quotes"
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			at.Line = n
		}
		msg = m[2]
	}
	if strings.Contains(msg, "cannot start any token") {
		hint = "indent with spaces, not tabs"
	}
	d.failf(&at, "", hint, "not YAML: %s", msg)
}

func (d *decoder) failf(n *yaml.Node, path, hint, format string, args ...any) {
	if d.json && len(d.errs) >= maxMistakes {
		d.more++
		return
	}
	d.errs = append(d.errs, &mistake.Error{Origin: pools.Origin{File: d.file, Line: n.Line, Path: path}, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// record notes the line of a value or of its key.
func (d *decoder) record(path string, n *yaml.Node) {
	if !d.inList {
		d.lines[path] = n.Line
	}
}

func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode { // an alias never refers to an alias
		n = n.Alias
	}
	if d.spent(n, 1) {
		return
	}
	d.record(path, n)
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			p.Elem().Set(v.Elem())
		}
		v.Set(p)
		v = p.Elem()
	}
	n, v = unwrapReplace(n, v)
	switch t := v.Addr().Interface().(type) {
	case *pools.Strings:
		if n.Kind == yaml.ScalarNode { // one instead of a list
			if s, ok := d.scalar(n, path, true); ok {
				*t = pools.Strings{s}
			}
			return
		}
	case *pools.Secret: // a text, or a reference
		if n.Kind == yaml.MappingNode {
			d.structure(n, v, path)
		} else if s, ok := d.scalar(n, path, true); ok {
			t.Text = s
		}
		return
	case *pools.Tree:
		if n.Kind != yaml.MappingNode {
			d.pairs(n, path, nil) // a mistake
			return
		}
		tree, _ := d.tree(n, path, 0).(map[string]any) // nil: there are too many values
		*t = tree
		return
	case encoding.TextUnmarshaler:
		d.text(n, t, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.dict(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	default:
		d.plain(n, v, path)
	}
}

// plain reads a string, a bool or an int.
func (d *decoder) plain(n *yaml.Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		if s, ok := d.scalar(n, path, true); ok {
			v.SetString(s)
		}
	case reflect.Bool:
		var b bool
		if err := n.Decode(&b); err != nil || d.json && n.Tag != "!!bool" {
			d.failf(n, path, "write true or false", "%s: %q is neither true nor false", path, n.Value)
		}
		v.SetBool(b)
	case reflect.Int:
		if s, ok := d.scalar(n, path, false); ok {
			i, err := strconv.ParseInt(s, 10, 32)
			if err != nil {
				d.failf(n, path, "write 64", "%s: %q is not a whole number", path, s)
			}
			v.SetInt(i)
		}
	default:
		panic("config: no way to decode a " + v.Type().String())
	}
}

// unwrapReplace handles the two forms of a [pools.List] and of [pools.KernelArgs]. It
// returns the node with the values, which may be below the key of {replace: ...}, and
// the field to decode them into. Nodes and values of other types are returned unchanged.
func unwrapReplace(n *yaml.Node, v reflect.Value) (*yaml.Node, reflect.Value) {
	if v.Kind() != reflect.Struct || !v.FieldByName("Replace").IsValid() {
		return n, v
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "replace" {
		v.FieldByName("Replace").SetBool(true)
		n = n.Content[1]
	}
	if items := v.FieldByName("Items"); items.IsValid() {
		return n, items
	}
	return n, v
}

// spent takes the cost of a value off the budget, and reports whether nothing is left.
func (d *decoder) spent(n *yaml.Node, cost int) bool {
	before := d.budget
	if d.budget -= cost; d.budget >= 0 {
		return false
	}
	if before >= 0 {
		d.failf(n, "", "aliases refer to too much", "the config unfolds to more than %d values", maxNodes)
	}
	return true
}

// scalar returns the text of a plain value, as it was written.
func (d *decoder) scalar(n *yaml.Node, path string, text bool) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.failf(n, path, "quote it if it is text", "%s: want a plain value, not a %s", path, kindName(n))
	case n.Tag == "!!null":
		d.failf(n, path, `remove the key, or write "" for an empty text`, "%s: has no value", path)
	case d.json && text && n.Tag != "!!str":
		d.failf(n, path, fmt.Sprintf("write %q", n.Value), "%s: want a string, not %s", path, n.Value)
	default:
		return n.Value, true
	}
	return "", false
}

func (d *decoder) text(n *yaml.Node, t encoding.TextUnmarshaler, path string) {
	s, ok := d.scalar(n, path, false)
	if !ok {
		return
	}
	err := t.UnmarshalText([]byte(s))
	if err == nil {
		return
	}
	switch t.(type) { // errors of the standard library are written for programmers
	case *netip.Addr:
		err = pools.Hint("write 10.28.0.2", "%q is not an IP address", s)
	case *netip.Prefix:
		err = pools.Hint("write 10.28.0.0/16", "%q is not a network", s)
	}
	msg, hint := mistake.Explain(path, err)
	d.failf(n, path, hint, "%s", msg)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	return "plain value"
}
