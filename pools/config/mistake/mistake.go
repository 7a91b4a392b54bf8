// Package mistake describes the mistakes of a config: what is wrong, where, and the
// remedy. It finds the known word that a misspelled one may mean.
//
// It does not know the config.
package mistake

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"drover/pools"
)

// Error is one mistake in a config, with its origin and the remedy.
type Error struct {
	pools.Origin
	Msg  string
	Hint string // the remedy; empty: none is known

	// Added marks a mistake in a node that no file declares: the path of its origin is
	// "API (node "n1")", or a chassis and a slot, and not that of a value.
	Added bool

	// Other is the other place of a conflict: "is there twice", "overlaps".
	Other pools.Origin
}

// Text returns the mistake and its remedy without its place.
func (e *Error) Text() string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + " (" + e.Hint + ")"
}

// Error returns "drover.yaml:41: pool "web": unknown tag "debg" (did you mean
// "debug"?)".
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "" || e.Added:
		fmt.Fprintf(&b, "%s: ", e.Position())
	}
	b.WriteString(e.Text())
	return b.String()
}

// Explain splits an error into a message, which begins with about, and the remedy.
func Explain(about string, err error) (msg, hint string) {
	if e, ok := errors.AsType[*pools.HintError](err); ok {
		return about + ": " + e.Msg, e.Hint
	}
	return about + ": " + err.Error(), ""
}

// Errors are all the mistakes of a config, in the order of its lines, file by file.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns the mistakes in the order of their files and lines, those without a line
// first; nil when there are none.
func (es Errors) Err() error {
	if len(es) == 0 {
		return nil
	}
	slices.SortStableFunc(es, func(a, b *Error) int {
		if a.Line > 0 && b.Line > 0 && a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Line - b.Line
	})
	return es
}
