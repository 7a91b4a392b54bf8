package pools

import (
	"fmt"
	"strings"
	"text/template"
)

// Template parses the template of the script; errors call it name. Its functions are
// join (strings with a separator) and quote (one word of a POSIX shell).
func (s Script) Template(name string) (*template.Template, error) {
	return template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"join":  strings.Join,
		"quote": shellQuote,
	}).Parse(s.Run)
}

// Render executes the script's template with a plan, that of package resolve.
func (s Script) Render(name string, plan any) (string, error) {
	t, err := s.Template(name)
	if err != nil {
		return "", fmt.Errorf("script %q: %w", name, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, plan); err != nil {
		return "", fmt.Errorf("script %q: %w", name, err)
	}
	return b.String(), nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
