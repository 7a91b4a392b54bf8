package pools

import (
	"fmt"
	"strings"
	"text/template"
)

// Template parses a template over the Plan; errors call it name. Its functions are join
// (strings with a separator), quote (one word of a POSIX shell) and replace (an old text, a
// new one, and the value to change).
func Template(name, text string) (*template.Template, error) {
	return template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"join":  strings.Join,
		"quote": shellQuote,
		"replace": func(old, replacement string, v any) string {
			return strings.ReplaceAll(fmt.Sprint(v), old, replacement)
		},
	}).Parse(text)
}

// Render executes a template with a plan, that of package resolve.
func Render(name, text string, plan any) (string, error) {
	t, err := Template(name, text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, plan); err != nil {
		return "", err
	}
	return b.String(), nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
