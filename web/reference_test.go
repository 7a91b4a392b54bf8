package web_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/web/api"
	"drover/web/route"
)

// TestReference keeps docs/rest.md equal to the table of routes.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Paths of the REST API

Made from the table of routes: ` + "`go test ./web -run TestReference -update`" + `. [api.md](api.md) says how to use
them; ` + "`/openapi.json`" + ` of each server is the same as an OpenAPI 3.1 document. A path with a
**secret** answer cannot be read with the session of a browser. Each request that changes
something also takes ` + "`dryRun=true`" + `.
`)
	for _, r := range (&api.API{}).Routes() {
		b.WriteString(section(&r))
	}
	fixture.Golden(t, "../docs/rest.md", []byte(b.String()))
}

func section(r *route.Route) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## `%s %s`\n\n%s.\n\nRole: %s", r.Method, r.Path, r.Summary, r.Role)
	if r.Secret {
		b.WriteString(". The answer is **secret**")
	}
	if r.Body != nil {
		fmt.Fprintf(&b, ". Body: %s", typeName(r.Body))
		if r.Patch {
			b.WriteString(" as a JSON merge patch (RFC 7386)")
		}
	}
	fmt.Fprintf(&b, ". Answer: %d", r.Status)
	if r.Answer != nil {
		fmt.Fprintf(&b, " with %s", typeName(r.Answer))
	}
	if r.Conditional {
		b.WriteString(". With ETag, and If-Match")
	}
	b.WriteString(".\n")
	parameters := slices.DeleteFunc(r.Parameters(), func(p route.Parameter) bool { return p.Name == route.DryRun })
	if len(parameters) > 0 {
		b.WriteString("\n| parameter | meaning |\n|---|---|\n")
	}
	for _, p := range parameters {
		about := p.About
		switch p.Kind {
		case route.Count:
			about += fmt.Sprintf(": 1 to %d", p.Max)
		case route.Word:
			about += ": `" + strings.Join(p.Words, "`, `") + "`"
		case route.Bool:
			about += ": `true` or `false`"
		case route.Time:
			about += ", as of RFC 3339"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.Name, about)
	}
	return b.String()
}

// typeName returns the name of a type as in the OpenAPI document.
func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Slice {
		return "a list of " + typeName(reflect.Zero(t.Elem()).Interface())
	}
	return strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
}
