package pools

import (
	"fmt"
	"slices"
	"strings"
)

// Error is one mistake in a config, with its place and, where there is one,
// the remedy.
type Error struct {
	Origin
	Msg  string
	Hint string
}

// Error returns "drover.yaml:41: pool "web": unknown tag "debg" (did you mean
// "debug"?)".
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// fault is a mistake in a value with its remedy.
type fault struct{ msg, hint string }

func (f *fault) Error() string { return f.msg + " (" + f.hint + ")" }

func faultf(hint, format string, args ...any) error {
	return &fault{fmt.Sprintf(format, args...), hint}
}

// Errors are all the mistakes of a config, in the order of its lines.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int { return a.Line - b.Line })
	return es
}

// Place returns the file and line alone; the path for what is in no file.
func (o Origin) Place() string {
	if o.File == "" {
		return o.Path
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// String returns "drover.yaml:41 (tags.foo)"; the path alone for what is in no
// file.
func (o Origin) String() string {
	if o.File == "" || o.Path == "" {
		return o.Place()
	}
	return o.Place() + " (" + o.Path + ")"
}
