package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/internal/printable"
)

// Document returns v as a YAML document in block style, with the keys and the order of its
// JSON.
func Document(v any) (*yaml.Node, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	// JSON is YAML, except for some control characters.
	if err := yaml.Unmarshal(printable.EscapeJSON(b), &doc); err != nil {
		return nil, err
	}
	blockStyle(&doc)
	return &doc, nil
}

// Write writes a document of [Document], indented by two blanks, without characters that
// control a terminal.
func Write(w io.Writer, doc *yaml.Node) error {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
		return err
	}
	_, err := w.Write(printable.EscapeJSON(b.Bytes()))
	return err
}

// Inline writes a value of a [Document] on one line.
func Inline(w io.Writer, value *yaml.Node) error {
	if value.Kind != yaml.ScalarNode {
		value.Style = yaml.FlowStyle
	}
	return Write(w, value)
}

// oldScalar is what YAML 1.1, and so kubectl, reads as a boolean or a number and YAML 1.2 as
// text: a number to base 60 is 1:30.
var oldScalar = regexp.MustCompile(`^(?i:y|yes|on|n|no|off|=|[-+]?0o?[0-7_]+|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)

// blockStyle removes the flow style of JSON: braces, brackets and needless quotes. A
// text with escapes needs quotes.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	switch text := []byte(n.Value); {
	case !bytes.Equal(printable.EscapeJSON(text), text), n.Tag == "!!str" && oldScalar.MatchString(n.Value):
		n.Style = yaml.DoubleQuotedStyle
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n"):
		n.Style = yaml.LiteralStyle
		if strings.ContainsRune(" \t\n", rune(n.Value[0])) { // the encoder gives its indentation wrong
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// NodeLine writes a node of the farm, a mapping of a [Document], on one line. It quotes
// the MACs, as the documentation does: some of them are numbers to base 60 in YAML 1.1.
func NodeLine(node *yaml.Node) {
	node.Style = yaml.FlowStyle
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != "macs" {
			continue
		}
		for _, m := range node.Content[i+1].Content {
			m.Style = yaml.DoubleQuotedStyle
		}
	}
}

// Documents returns the documents of a YAML stream as JSON, with all keys as text. Empty ones are
// left out. Its errors are [mistake.Errors] for what is not YAML.
func Documents(file string, data []byte) (all [][]byte, _ error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for n := 1; ; n++ {
		var doc yaml.Node
		var v any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil {
			textKeys(&doc)
			err = doc.Decode(&v)
		}
		if err != nil {
			d := &decoder{file: file}
			d.syntaxError(err)
			return nil, d.errs.Err()
		}
		if v == nil {
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, n, err)
		}
		all = append(all, b)
	}
}

// textKeys makes the plain keys of all mappings text: 42: x.
func textKeys(n *yaml.Node) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.Tag != "!!merge" {
			c.Tag = "!!str"
		}
		textKeys(c)
	}
}
