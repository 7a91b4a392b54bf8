package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/pools/printable"
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

// blockStyle removes the flow style of JSON: braces, brackets and needless quotes. A
// text with escapes needs quotes.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	switch text := []byte(n.Value); {
	case !bytes.Equal(printable.EscapeJSON(text), text):
		n.Style = yaml.DoubleQuotedStyle
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n"):
		n.Style = yaml.LiteralStyle
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

// Documents returns the documents of a YAML stream as JSON. Empty ones are left out.
func Documents(file string, data []byte) (all [][]byte, _ error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for n := 1; ; n++ {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, n, err)
		}
		if v == nil {
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: a key is not text: %w", file, n, err)
		}
		all = append(all, b)
	}
}
