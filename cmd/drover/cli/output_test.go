package cli_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
)

// TestTable: a cell has no effect on a terminal and on its row, whatever a machine says.
func TestTable(t *testing.T) {
	var b strings.Builder
	now := time.Date(2026, 11, 20, 13, 0, 0, 0, time.FixedZone("", 3600))
	err := cli.Table(&b, []string{"", "a\tb\nc\x1b[2J"}, "NAME\tIP\tTIME", func(s string) []any { return []any{s, netip.Addr{}, now} })
	lines := strings.Split(b.String(), "\n")
	if err != nil || len(lines) != 4 || lines[1] != "-          -   2026-11-20 12:00:00" || strings.ContainsAny(lines[2], "\x1b\t") {
		t.Errorf("%v\n%q", err, lines)
	}
}

// TestFindings: faults come last, where an operator sees them, and warnings are none.
func TestFindings(t *testing.T) {
	var f cli.Findings
	f.Add("disk", cli.Fault, "full\nof \x1b[2Jimages", "remove some")
	f.Add("image", cli.Warning, "old", "")
	f.Add("api", cli.OK, "answers", "")
	f.Add("ports", cli.Fault, "taken", "")
	var b strings.Builder
	if err := f.Write(&b); err != nil {
		t.Error(err)
	}
	order := []string{"ok       api", "warning  image", "fault    disk", "-> remove some", "fault    ports"}
	at := 0
	for _, want := range order {
		i := strings.Index(b.String()[at:], want)
		if i < 0 {
			t.Fatalf("got\n%s\nwant %q in this order", &b, order)
		}
		at += i
	}
	if f.Faults() != 2 || strings.Contains(b.String(), "\x1b") {
		t.Errorf("%d faults\n%s", f.Faults(), &b)
	}
}

// TestLoadConfig: each mistake is a line, and the error has their number.
func TestLoadConfig(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"server: {}\nx: 1\ny: 2\n": " mistakes", "server: [": ": 1 mistake",
	} {
		file := filepath.Join(dir, "drover.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var errs strings.Builder
		_, err := cli.LoadConfig(file, &errs)
		if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(errs.String(), file+":") {
			t.Errorf("%q: got %v, want %q\n%s", text, err, want, &errs)
		}
	}
	var errs strings.Builder
	if _, err := cli.LoadConfig(filepath.Join(dir, "none"), &errs); !os.IsNotExist(err) || errs.Len() > 0 {
		t.Errorf("got %v\n%s", err, &errs)
	}
}

// TestGroup: a group without a subcommand shows its help, and an unknown one is an error.
func TestGroup(t *testing.T) {
	ran := false
	group := func() *cobra.Command {
		sub := &cobra.Command{Use: "go", Example: "  drover car go \\\n    --fast", Run: func(*cobra.Command, []string) { ran = true }}
		root := &cobra.Command{Use: "drover"}
		root.AddCommand(cli.Group(&cobra.Command{Use: "car"}, sub))
		return root
	}
	for line, want := range map[string]int{"car": 0, "car stop": cli.Usage, "car go": 0} {
		var out, errs strings.Builder
		if got := cli.Execute(t.Context(), group(), strings.Fields(line), &out, &errs); got != want || ran != (line == "car go") {
			t.Errorf("%s: exit %d, ran: %t\n%s%s", line, got, ran, &out, &errs)
		}
		if line == "car" && !strings.Contains(out.String(), "  drover car go\n") {
			t.Errorf("the help has no example:\n%s", &out)
		}
		ran = false
	}
}
