package crd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reference returns the fields of all kinds as tables of Markdown.
func Reference(all []*Definition) string {
	var b strings.Builder
	for _, d := range all {
		root := d.Spec.Versions[0].Schema.OpenAPI
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", d.Spec.Names.Kind, root.Description)
		for _, part := range []string{"spec", "status"} {
			fmt.Fprintf(&b, "\n| %s | type | meaning |\n|---|---|---|\n", part)
			rows(&b, "", root.Properties[part])
		}
	}
	return b.String()
}

// rows writes a row for each field of a schema, and of those below.
func rows(b *strings.Builder, prefix string, s *Schema) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		at := prefix + name
		about := p.Description
		if slices.Contains(s.Required, name) {
			about = "Required. " + about
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", at, kindOf(p), strings.ReplaceAll(about, "|", `\|`))
		switch {
		case p.Properties != nil:
			rows(b, at+".", p)
		case p.Items != nil:
			rows(b, at+"[].", p.Items)
		case p.Additional != nil:
			rows(b, at+".*.", p.Additional)
		}
	}
}

// kindOf returns the type of a field for people.
func kindOf(s *Schema) string {
	switch {
	case s.IntOrString:
		return "number or text"
	case s.AnyFields:
		return "several"
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Items != nil:
		return "list of " + kindOf(s.Items)
	case s.Additional != nil:
		return "map to " + kindOf(s.Additional)
	case len(s.AnyOf) > 0:
		return "IP address"
	case s.Format == "cidr":
		return "network"
	case s.Format == "date-time":
		return "time"
	case s.Type == "string":
		return "text"
	}
	return s.Type
}
