// Package jsonpath evaluates the expressions of -o jsonpath=: a template with paths in braces, as
// in kubectl. A path has fields (.name, ['name']), elements ([0], [-1]) and all of them ([*], .*).
// It has neither filters nor ranges: their users have -o json and a program such as jq.
package jsonpath

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Template is a text with paths.
type Template []part

// part is a text, or steps to values.
type part struct {
	text  string
	steps []string // nil: it is a text
}

var step = regexp.MustCompile(`^(?:\.([A-Za-z0-9_-]+|\*)|\[(-?[0-9]+|\*)\]|\['([^']*)'\])`)

// Parse reads a template. Without braces it is one path.
func Parse(text string) (t Template, err error) {
	if !strings.Contains(text, "{") {
		text = "{" + text + "}"
	}
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		t = append(t, part{text: strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(before)})
		if !found {
			return t, nil
		}
		path, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("%q: a brace is not closed", text)
		}
		p, err := parsePath(path)
		if err != nil {
			return nil, err
		}
		t, text = append(t, p), after
	}
	return t, nil
}

func parsePath(path string) (part, error) {
	if text, err := strconv.Unquote(path); err == nil { // {"\n"}
		return part{text: text}, nil
	}
	p, rest := part{steps: []string{}}, strings.TrimPrefix(path, "$")
	if rest == "." {
		return p, nil
	}
	for rest != "" {
		m := step.FindStringSubmatch(rest)
		if m == nil {
			return p, fmt.Errorf("%q: want fields and elements: {.name}, {[0].macs[*]}", path)
		}
		p.steps, rest = append(p.steps, m[1]+m[2]+m[3]), rest[len(m[0]):]
	}
	return p, nil
}

// Execute returns the template with the values of v, which is encoded as JSON first. Values of one
// path are separated by spaces. A field that is not there has no value.
func (t Template) Execute(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, p := range t {
		if p.steps == nil {
			out.WriteString(p.text)
			continue
		}
		values := []any{root}
		for _, s := range p.steps {
			values = follow(values, s)
		}
		for i, v := range values {
			if i > 0 {
				out.WriteByte(' ')
			}
			if s, ok := v.(string); ok {
				out.WriteString(s)
			} else if b, err := json.Marshal(v); err == nil {
				out.Write(b)
			}
		}
	}
	return out.String(), nil
}

// follow takes one step from each value.
func follow(values []any, s string) (next []any) {
	for _, v := range values {
		switch v := v.(type) {
		case []any:
			i, err := strconv.Atoi(s)
			if i < 0 {
				i += len(v)
			}
			switch {
			case s == "*":
				next = append(next, v...)
			case err == nil && i >= 0 && i < len(v):
				next = append(next, v[i])
			}
		case map[string]any:
			if s == "*" {
				for _, k := range slices.Sorted(maps.Keys(v)) {
					next = append(next, v[k])
				}
			} else if x, ok := v[s]; ok {
				next = append(next, x)
			}
		}
	}
	return next
}
