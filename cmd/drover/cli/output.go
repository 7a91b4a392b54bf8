package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli/jsonpath"
	"drover/internal/printable"
	"drover/pools/config/decode"
)

// Output is the format of a command's output, from its flag --output.
type Output struct {
	format  string
	formats []string // the first is for people, and the default
}

// Flag adds -o/--output to a command. The first format is the default. An unknown format
// is an error before the command does anything.
func (o *Output) Flag(cmd *cobra.Command, formats ...string) {
	o.formats = formats
	usage := strings.Join(formats, "|")
	if slices.Contains(formats, "json") {
		usage += "|jsonpath=PATH"
	}
	cmd.Flags().StringVarP(&o.format, "output", "o", formats[0], usage)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.check() }
}

// Format returns the format that was asked for.
func (o *Output) Format() string { return o.format }

// jsonPath begins the format that picks values out of that of JSON.
const jsonPath = "jsonpath="

func (o *Output) check() error {
	if slices.Contains(o.formats, o.format) {
		return nil
	}
	if path, ok := strings.CutPrefix(o.format, jsonPath); ok && slices.Contains(o.formats, "json") {
		if _, err := jsonpath.Parse(path); err != nil {
			return &Error{Usage, fmt.Errorf("--output: %w", err)}
		}
		return nil
	}
	last := len(o.formats) - 1
	return &Error{Usage, fmt.Errorf("unknown output %q (%s or %s)", o.format, strings.Join(o.formats[:last], ", "), o.formats[last])}
}

// Print writes v as JSON or YAML, or calls human, according to the format.
func (o *Output) Print(cmd *cobra.Command, v any, human func(io.Writer) error) error {
	if o.format == o.formats[0] {
		return human(cmd.OutOrStdout())
	}
	return Print(cmd.OutOrStdout(), v, o.format)
}

// PrintNamed is [Output.Print] for objects with names: the format name is one to a line.
func (o *Output) PrintNamed(cmd *cobra.Command, v any, names []string, human func(io.Writer) error) error {
	if o.format != "name" {
		return o.Print(cmd, v, human)
	}
	for _, name := range names {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), printable.Text(name)); err != nil {
			return err
		}
	}
	return nil
}

// Log returns the writer for what a command tells people while it works: standard output,
// unless that gets a result in another format than theirs.
func (o *Output) Log(cmd *cobra.Command) io.Writer {
	if o.format == o.formats[0] {
		return cmd.OutOrStdout()
	}
	return cmd.ErrOrStderr()
}

// Show makes cmd a command that prints the result of get, with the flag --output. The
// argument human is the name of the format for people, and text writes it.
func Show[T any](cmd *cobra.Command, human string, get func(context.Context, []string) (T, error), text func(io.Writer, T) error) {
	o := &Output{}
	o.Flag(cmd, human, "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, err := get(cmd.Context(), args)
		if err != nil {
			return err
		}
		return o.Print(cmd, v, func(w io.Writer) error { return text(w, v) })
	}
}

// Table writes a table with a row for each item. Tabs separate the columns of header. An
// empty cell is shown as "-", and a time in UTC.
func Table[T any](w io.Writer, items []T, header string, row func(T) []any) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, header)
	for _, item := range items {
		var cells []string
		for _, v := range row(item) {
			cells = append(cells, cell(v))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// cell renders one value of a table.
func cell(v any) string {
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format(time.DateTime)
	case netip.Addr:
		return AddrOrDash(v)
	}
	return OrDash(printable.Text(fmt.Sprint(v)))
}

// Print writes v as JSON or YAML.
func Print(w io.Writer, v any, format string) error {
	if format == "yaml" {
		return printYAML(w, v)
	}
	if path, ok := strings.CutPrefix(format, jsonPath); ok {
		return printPath(w, v, path)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(printable.EscapeJSON(b.Bytes()))
	return err
}

// printPath writes the values that a template picks out of v.
func printPath(w io.Writer, v any, path string) error {
	t, err := jsonpath.Parse(path)
	if err != nil {
		return err
	}
	text, err := t.Execute(v)
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		cells := strings.Split(line, "\t")
		for i, cell := range cells {
			cells[i] = printable.Text(cell)
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// printYAML writes v as YAML, with the keys and the order of its JSON.
func printYAML(w io.Writer, v any) error {
	doc, err := decode.Document(v)
	if err != nil {
		return err
	}
	return decode.Write(w, doc)
}

// Note writes a line about a machine or another subject, for people.
func Note(w io.Writer, about, text string) {
	fmt.Fprintf(w, "drover: %s\n", printable.Text(about+": "+text))
}

// OrDash returns s, or a dash for an empty one.
func OrDash(s string) string { return cmp.Or(s, "-") }

// AddrOrDash returns an address as text, or a dash for none.
func AddrOrDash(a netip.Addr) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}
