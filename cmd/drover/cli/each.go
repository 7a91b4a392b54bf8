package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drover/internal/printable"
)

// Done is what a command has done to a resource.
type Done struct {
	Name   string `json:"name"`
	Done   string `json:"done"` // "removed", say
	Detail string `json:"detail,omitempty"`
}

// Each is the output of a command that does something to one resource after the other,
// with the flag --output.
type Each struct {
	Output
	all []Done
}

// Flag adds the flag --output to a command.
func (e *Each) Flag(cmd *cobra.Command) { e.Output.Flag(cmd, "text", "name", "json", "yaml") }

// Add notes what is done, and prints it if the format is text.
func (e *Each) Add(cmd *cobra.Command, d Done) {
	e.all = append(e.all, d)
	if e.format == e.formats[0] {
		fmt.Fprintln(cmd.OutOrStdout(), printable.Text(strings.TrimSpace(d.Done+" "+d.Name+" "+d.Detail)))
	}
}

// Print prints what was added, unless Add has.
func (e *Each) Print(cmd *cobra.Command) error {
	if e.all == nil {
		e.all = []Done{} // [] rather than null
	}
	names := make([]string, len(e.all))
	for i, d := range e.all {
		names[i] = d.Name
	}
	return e.PrintNamed(cmd, e.all, names, func(io.Writer) error { return nil })
}

// Do calls do with each name, and prints those that are done. It goes on after an error,
// unless the server is unreachable or refuses the token; some errors are [Partly].
func (e *Each) Do(cmd *cobra.Command, done string, names []string, do func(name string) error) error {
	var errs []error
	for _, name := range names {
		err := do(name)
		if err == nil {
			e.Add(cmd, Done{Name: name, Done: done})
			continue
		}
		errs = append(errs, err)
		if code := CodeOf(err); code == Unreachable || code == Refused {
			break
		}
	}
	some := len(e.all) > 0
	err := e.Print(cmd)
	if len(errs) > 0 && some {
		return &Error{Partly, errors.Join(append(errs, err)...)}
	}
	return errors.Join(append(errs, err)...)
}
