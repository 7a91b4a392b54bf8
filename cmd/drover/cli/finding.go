package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"drover/internal/printable"
)

// Finding is the result of a check of a host: a fault, or that there is none.
type Finding struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	Text   string `json:"text"`             // what was found
	Remedy string `json:"remedy,omitempty"` // what to do about it
}

// Result is the result of a check.
type Result string

// The results of a check.
const (
	OK      Result = "ok"
	Skipped Result = "skipped"
	Warning Result = "warning"
	Fault   Result = "fault"
)

// Findings are the results of several checks.
type Findings []Finding

// Add adds the result of a check.
func (f *Findings) Add(check string, result Result, text, remedy string) {
	*f = append(*f, Finding{check, result, printable.Text(text), printable.Text(remedy)})
}

// Faults counts the faults. Warnings are none.
func (f Findings) Faults() (n int) {
	for _, one := range f {
		if one.Result == Fault {
			n++
		}
	}
	return n
}

// Write writes the findings for people, the faults last.
func (f Findings) Write(w io.Writer) error {
	rank := []Result{OK, Skipped, Warning, Fault}
	all := slices.Clone(f)
	slices.SortStableFunc(all, func(a, b Finding) int { return slices.Index(rank, a.Result) - slices.Index(rank, b.Result) })
	var b strings.Builder
	for _, one := range all {
		fmt.Fprintf(&b, "%-8s %-12s %s\n", one.Result, one.Check, strings.ReplaceAll(one.Text, "\n", "\n                      "))
		if one.Remedy != "" {
			fmt.Fprintf(&b, "         %-12s -> %s\n", "", one.Remedy)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
