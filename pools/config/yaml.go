package config

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// YAML returns v as a YAML document in block style, with the keys and the order of its
// JSON.
func YAML(v any) (*yaml.Node, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil { // JSON is YAML
		return nil, err
	}
	blockStyle(&doc)
	return &doc, nil
}

// WriteYAML writes a document, indented by two blanks.
func WriteYAML(w io.Writer, doc *yaml.Node) error {
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	return errors.Join(enc.Encode(doc), enc.Close())
}

// blockStyle removes the flow style of JSON: braces, brackets and needless quotes.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}
