// Package importtest imports texts of other servers' configs, for the tests of the packages that
// read them.
package importtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/migrate"
	"drover/pools"
	"drover/pools/config"
)

// Text imports a text, and returns its result and the farm that is written.
func Text(t testing.TB, read func(*migrate.Farm, []string) error, text string) (*migrate.Result, *pools.Config) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i := migrate.Import{Options: migrate.Options{Interfaces: []string{"eth1"}}, Read: func(f *migrate.Farm) error { return read(f, []string{file}) }}
	r, err := i.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	farm, err := config.Parse("drover.yaml", r.Config())
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Config())
	}
	return r, &farm.Config
}

// Open returns the ranges that unknown machines can lease from, with what these must send.
func Open(c *pools.Config) (all []string) {
	for _, p := range c.Pools {
		switch {
		case !p.CatchAll:
		case p.Ignore:
			all = append(all, "not "+p.Match.Class+p.Match.UserClass+p.Match.Arch.String())
		default:
			text := p.Range.String() + p.Range6.String() + " " + p.Match.Class + p.Match.UserClass + p.Match.Arch.String()
			if p.Match.CircuitID != "" {
				text += " at " + p.Match.CircuitID
			}
			all = append(all, strings.TrimSpace(text))
		}
	}
	return all
}

// WantOpen imports a text, and fails the test unless these ranges stay open. restricted reports
// whether one is left out by a rule that drover does not have.
func WantOpen(t testing.TB, read func(*migrate.Farm, []string) error, text string, open []string, restricted bool) {
	t.Helper()
	r, c := Text(t, read, text)
	if got := Open(c); !slices.Equal(got, open) || r.Restricted != restricted {
		t.Errorf("%s\nopen %q, restricted %v; want %q, %v\n%s", text, got, r.Restricted, open, restricted, Report(r))
	}
}

// WantNodes compares the nodes of a config: NAME MAC,MAC IP IP6.
func WantNodes(t testing.TB, r *migrate.Result, c *pools.Config, want ...string) {
	t.Helper()
	var got []string
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			var macs []string
			for _, m := range n.MACs {
				macs = append(macs, m.String())
			}
			line := []string{n.Name, strings.Join(macs, ",")}
			if n.IP.IsValid() {
				line = append(line, n.IP.String())
			}
			if n.IP6.IsValid() {
				line = append(line, n.IP6.String())
			}
			got = append(got, strings.Join(line, " "))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%s", got, want, Report(r))
	}
}

// Report is what the command prints.
func Report(r *migrate.Result) string {
	var b strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintln(&b, n)
	}
	for _, ch := range r.Changes {
		fmt.Fprintln(&b, ch)
	}
	fmt.Fprintln(&b, r.Summary())
	return b.String()
}
