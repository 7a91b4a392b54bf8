package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/internal/atomicfile"
	"drover/pools"
)

// Bounds of a file. A config of 10 000 machines has 2 MB and some 200 000 values.
const (
	maxFile   = 16 << 20 // bytes
	maxValues = 1 << 20  // with those that aliases repeat
	maxDepth  = 100
)

// Value is a value of a YAML or JSON file, with its place. A nil Value is none.
type Value struct {
	pools.Origin        // Path is the keys to the value: ltsp.config.timezone
	Text         string // of a plain value, as it was written
	Null         bool
	Quoted       bool     // the plain value is a text, whatever it looks like
	Pairs        []Pair   // of a mapping, in the order of the file
	Items        []*Value // of a list
	kind         yaml.Kind
}

// Pair is a key of a mapping with its value.
type Pair struct {
	Key   string
	Value *Value
}

// IsMap reports whether the value is a mapping.
func (v *Value) IsMap() bool { return v != nil && v.kind == yaml.MappingNode }

// IsList reports whether the value is a list.
func (v *Value) IsList() bool { return v != nil && v.kind == yaml.SequenceNode }

// IsPlain reports whether the value is a text, a number, true or false.
func (v *Value) IsPlain() bool { return v != nil && v.kind == yaml.ScalarNode && !v.Null }

// IsNull reports whether there is no value.
func (v *Value) IsNull() bool { return v == nil || v.Null }

// Get returns the value at the keys of nested mappings; nil if there is none.
func (v *Value) Get(keys ...string) *Value {
	for _, key := range keys {
		if v == nil {
			return nil
		}
		var next *Value
		for _, p := range v.Pairs {
			if p.Key == key {
				next = p.Value
			}
		}
		v = next
	}
	return v
}

// String returns the text of a plain value; "" for others.
func (v *Value) String() string {
	if !v.IsPlain() {
		return ""
	}
	return v.Text
}

// Is reports whether the value is true, as YAML 1.1 writes it.
func (v *Value) Is() bool {
	switch strings.ToLower(v.String()) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// Strings returns the plain values of a list, or a plain value as a list of one.
func (v *Value) Strings() (all []string) {
	if v.IsPlain() {
		return []string{v.Text}
	}
	if v == nil {
		return nil
	}
	for _, item := range v.Items {
		if item.IsPlain() {
			all = append(all, item.Text)
		}
	}
	return all
}

// List returns the items of a list; none of other values.
func (v *Value) List() []*Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// NewText returns a plain value that a reader has made of another form.
func NewText(at pools.Origin, text string) *Value {
	return &Value{Origin: at, Text: text, kind: yaml.ScalarNode}
}

// NewMap returns an empty mapping.
func NewMap(at pools.Origin) *Value { return &Value{Origin: at, kind: yaml.MappingNode} }

// NewList returns an empty list.
func NewList(at pools.Origin) *Value { return &Value{Origin: at, kind: yaml.SequenceNode} }

// Set adds a pair to a mapping.
func (v *Value) Set(key string, value *Value) { v.Pairs = append(v.Pairs, Pair{key, value}) }

// Append adds an item to the list at a key of a mapping.
func (v *Value) Append(key string, item *Value) {
	list := v.Get(key)
	if list == nil {
		list = NewList(item.Origin)
		v.Set(key, list)
	}
	list.Items = append(list.Items, item)
}

// Leaves calls each for every value that is no mapping and no list, and for empty ones
// of these.
func (v *Value) Leaves(each func(*Value)) {
	switch {
	case v == nil:
	case len(v.Pairs) > 0:
		for _, p := range v.Pairs {
			p.Value.Leaves(each)
		}
	case len(v.Items) > 0:
		for _, item := range v.Items {
			item.Leaves(each)
		}
	default:
		each(v)
	}
}

// ParseYAML reads the documents of a YAML file. Its errors are [ErrFormat].
func ParseYAML(file string, data []byte) (documents []*Value, err error) {
	if len(data) > maxFile {
		return nil, FormatError(pools.Origin{File: file}, "more than %d bytes", maxFile)
	}
	return parse(file, data, nil)
}

// parse reads the documents of a text. lines are the places of its lines, if they are of
// several files.
func parse(file string, data []byte, lines []pools.Origin) (documents []*Value, err error) {
	t := &treeReader{file: file, lines: lines, left: maxValues}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		switch err := dec.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, FormatError(pools.Origin{File: file}, "%v", err)
		}
		if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 {
			continue
		}
		v, err := t.value(doc.Content[0], "", 0)
		if err != nil {
			return nil, err
		}
		documents = append(documents, v)
	}
}

// ParseJSON reads the text of a JSON file with the comments of Kea: //, # and /* */.
func ParseJSON(file string, data []byte) (*Value, error) {
	documents, err := ParseYAML(file, withoutComments(data)) // JSON is YAML, in which # is a comment too
	return one(file, documents, err)
}

func one(file string, documents []*Value, err error) (*Value, error) {
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 || !documents[0].IsMap() {
		return nil, FormatError(pools.Origin{File: file}, "not one JSON object")
	}
	return documents[0], nil
}

// treeReader turns the nodes of a file into values.
type treeReader struct {
	file  string
	lines []pools.Origin
	left  int
}

// at returns the place of a value on a line.
func (t *treeReader) at(line int, path string) pools.Origin {
	o := pools.Origin{File: t.file, Line: line}
	if line > 0 && line <= len(t.lines) {
		o = t.lines[line-1]
	}
	o.Path = path
	return o
}

func (t *treeReader) value(n *yaml.Node, path string, depth int) (*Value, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	v := &Value{Origin: t.at(n.Line, path), kind: n.Kind}
	if t.left--; t.left < 0 || depth > maxDepth {
		return nil, FormatError(v.Origin, "more than %d values, or more than %d in each other", maxValues, maxDepth)
	}
	switch n.Kind {
	case yaml.ScalarNode:
		v.Text, v.Null, v.Quoted = n.Value, n.Tag == "!!null", n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle) != 0
	case yaml.SequenceNode:
		for i, c := range n.Content {
			item, err := t.value(c, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
	case yaml.MappingNode:
		return v, t.pairs(v, n, depth)
	}
	return v, nil
}

// pairs reads the pairs of a mapping. Merged ones (<<: *name) come last, and give way.
func (t *treeReader) pairs(v *Value, n *yaml.Node, depth int) error {
	seen := map[string]bool{}
	var merged []*Value
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := t.at(key.Line, join(v.Path, key.Value))
		switch {
		case key.Tag == "!!merge":
			from, err := t.value(n.Content[i+1], v.Path, depth+1)
			if err != nil {
				return err
			}
			merged = append(merged, append(from.Items, from)...)
			continue
		case key.Kind != yaml.ScalarNode:
			return FormatError(at, "a key that is no plain text")
		case seen[key.Value]:
			return FormatError(at, "key %q is there twice", key.Value)
		}
		seen[key.Value] = true
		value, err := t.value(n.Content[i+1], at.Path, depth+1)
		if err != nil {
			return err
		}
		if value.IsMap() || value.IsList() { // the line of a block is that of its key
			value.File, value.Line = at.File, at.Line
		}
		v.Pairs = append(v.Pairs, Pair{key.Value, value})
	}
	for _, from := range merged {
		for _, p := range from.Pairs {
			if !seen[p.Key] {
				seen[p.Key] = true
				v.Pairs = append(v.Pairs, p)
			}
		}
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// ReadYAML reads the documents of YAML files that hold something.
func ReadYAML(files []string) (documents []*Value, err error) {
	for _, file := range files {
		data, err := ReadFile(file)
		if err != nil {
			return nil, err
		}
		all, err := ParseYAML(file, data)
		if err != nil {
			return nil, err
		}
		documents = append(documents, slices.DeleteFunc(all, (*Value).IsNull)...)
	}
	return documents, nil
}

// At returns the place of a whole file.
func At(file string) pools.Origin { return pools.Origin{File: file} }

// ReadFile reads a file of at most [maxFile] bytes.
func ReadFile(path string) ([]byte, error) { return atomicfile.Read(path, maxFile) }

// Merge returns base with the values of over, as Helm merges files of values: mappings
// key by key, everything else is replaced, and null removes a key.
func Merge(base, over *Value) *Value {
	if !base.IsMap() || !over.IsMap() {
		return over
	}
	merged := *base
	merged.Pairs = nil
	for _, p := range base.Pairs {
		switch v := over.Get(p.Key); {
		case v == nil:
			merged.Pairs = append(merged.Pairs, p)
		case !v.Null:
			merged.Pairs = append(merged.Pairs, Pair{p.Key, Merge(p.Value, v)})
		}
	}
	for _, p := range over.Pairs {
		if base.Get(p.Key) == nil && !p.Value.Null {
			merged.Pairs = append(merged.Pairs, p)
		}
	}
	return &merged
}

// WithoutLines removes the lines of a value: it is in no file of the operator.
func (v *Value) WithoutLines() *Value {
	v.Line = 0
	for _, p := range v.Pairs {
		p.Value.WithoutLines()
	}
	for _, item := range v.Items {
		item.WithoutLines()
	}
	return v
}
