package boots_test

import (
	"os"
	"strings"
	"testing"

	"drover/pools/boots"
)

func TestSteps(t *testing.T) {
	manual, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range boots.Steps() {
		if got := s.Step.Rank(); got != i {
			t.Errorf("%s: rank %d, want %d: is it there twice?", s.Step, got, i)
		}
		if got := s.Step.Reporter(); got != s.Reporter || got == "" {
			t.Errorf("%s: reporter %q, want %q", s.Step, got, s.Reporter)
		}
		for folder := range strings.SplitSeq(s.Source, ", ") {
			if info, err := os.Stat("../../" + folder); err != nil || !info.IsDir() {
				t.Errorf("%s: its source %s is no folder", s.Step, folder)
			}
		}
		row := "| `" + string(s.Step) + "` | " + string(s.Reporter) + " | " + s.Meaning + " |\n"
		if !strings.Contains(string(manual), row) {
			t.Errorf("docs/api.md has no row %s", row)
		}
	}
	if got := boots.Step("coffee"); got.Rank() != -1 || got.Reporter() != "" {
		t.Errorf("an unknown step has rank %d and reporter %q", got.Rank(), got.Reporter())
	}
}
