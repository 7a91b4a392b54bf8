package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"
)

// OutputFlag adds -o/--output with the first format as the default.
func OutputFlag(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", formats[0], strings.Join(formats, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// CheckOutput refuses an unknown --output before anything is asked of the
// server; human is the format for people.
func CheckOutput(output, human string) error {
	switch output {
	case human, "json", "yaml":
		return nil
	}
	return &Error{Usage, fmt.Errorf("unknown output %q (%s, json or yaml)", output, human)}
}

// Print writes v as JSON or YAML, or calls text.
func Print(w io.Writer, v any, format string, text func(io.Writer) error) error {
	switch format {
	case "text":
		return text(w)
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		return printYAML(w, v)
	}
	return &Error{Usage, fmt.Errorf("unknown output %q (text, json or yaml)", format)}
}

// PrintTable writes v as JSON or YAML, or else for people.
func PrintTable(w io.Writer, output string, v any, human func(io.Writer) error) error {
	if output == "table" {
		return human(w)
	}
	return Print(w, v, output, human)
}

// printYAML writes what JSON would show as YAML, in the same order.
func printYAML(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil { // JSON is YAML
		return err
	}
	blockStyle(&doc)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return err
	}
	return enc.Close()
}

// blockStyle removes the style of JSON: braces, brackets and quotes that are
// not needed.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func AddrOrDash(a netip.Addr) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}
