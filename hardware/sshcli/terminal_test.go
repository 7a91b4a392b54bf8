package sshcli_test

import (
	"fmt"
	"testing"

	"drover/hardware/sshcli"
)

func ExampleVisible() {
	fmt.Printf("%q\n", sshcli.Visible("-- More --\r          \rc1n1\t\x1b[1mOn\x1b[0m\r"))
	// Output: "c1n1    On"
}

func TestCutPrompt(t *testing.T) {
	for _, tt := range []struct {
		line, rest string
		ok         bool
	}{
		{"hpiLO-> show node list", " show node list", true}, {"MP>", "", true}, {"  m1-> ", " ", true},
		{"a b> x", "", false}, {"->", "", false}, {"x>y", "", false}, {"no prompt", "", false},
	} {
		if rest, ok := sshcli.CutPrompt(tt.line); rest != tt.rest || ok != tt.ok {
			t.Errorf("%q: got %q, %t, want %q, %t", tt.line, rest, ok, tt.rest, tt.ok)
		}
	}
}

func TestIsPager(t *testing.T) {
	for line, want := range map[string]bool{"-- More --": true, "--more--": true, "more": false, "": false, "-": false} {
		if got := sshcli.IsPager(line); got != want {
			t.Errorf("%q: got %t, want %t", line, got, want)
		}
	}
}
