package moonshot_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/hardware/bmc"
	"drover/hardware/moonshot"
)

// TestTranscripts compares the inventories of the transcripts in testdata/transcripts
// with golden files.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("got %d transcripts (%v), want 12 and more", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := summary(moonshot.Parse(string(text)))
			golden := strings.TrimSuffix(file, ".txt") + ".golden"
			fixture.Golden(t, golden, got)
		})
	}
}

// summary writes an inventory as the golden files have it.
func summary(inv *moonshot.Inventory, err error) string {
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	var b strings.Builder
	for _, n := range inv.Nodes {
		fmt.Fprintf(&b, "%s %s", n.Slot, n.Power)
		for _, nic := range n.NICs {
			fmt.Fprintf(&b, " %d%s=%s", nic.Number, nic.Switch, nic.MAC)
		}
		for _, f := range []struct{ name, text string }{
			{"health", n.Health}, {"maker", n.Maker}, {"arch", n.Arch}, {"memory", n.Memory},
			{"product", n.Product}, {"serial", n.Serial}, {"tag", n.AssetTag},
		} {
			if f.text != "" {
				fmt.Fprintf(&b, " %s=%q", f.name, f.text)
			}
		}
		b.WriteByte('\n')
	}
	for _, s := range inv.Empty {
		fmt.Fprintf(&b, "empty %s\n", s)
	}
	for _, n := range inv.Problems {
		fmt.Fprintf(&b, "problem %s\n", n)
	}
	for _, n := range inv.Warnings {
		fmt.Fprintf(&b, "warning %s\n", n)
	}
	return b.String()
}

// TestNoise: the additions of terminals, pagers and mail programs do not change the
// inventory.
func TestNoise(t *testing.T) {
	text, err := os.ReadFile("testdata/transcripts/firmware-2014.txt")
	if err != nil {
		t.Fatal(err)
	}
	clean := string(text)
	want := summary(moonshot.Parse(clean))
	if !strings.Contains(want, "c1n1 on 1A=a0:1d:48:b5:04:34") {
		t.Fatalf("the transcript without noise gives %s", want)
	}
	const row = "  2  c2n1  N/A               N/A               N/A               N/A"
	for _, tt := range []struct{ name, text string }{
		{"CR LF", strings.ReplaceAll(clean, "\n", "\r\n")},
		{"CR CR LF", strings.ReplaceAll(clean, "\n", "\r\r\n")},
		{"colours", strings.ReplaceAll(clean, "c1n1", "\x1b[1;32mc1n1\x1b[0m")},
		{"a cursor that is moved", "\x1b[2J\x1b[H" + clean},
		{"an escape that never ends", clean + "\x1b["},
		{"NUL and BEL", strings.ReplaceAll(clean, "c1n1", "c\x001\an1")},
		{"a pager wiped by CR", strings.ReplaceAll(clean, row, "-- More --\r          \r"+row)},
		{"a pager wiped by backspaces", strings.ReplaceAll(clean, row, "--More--"+strings.Repeat("\b \b", 8)+row)},
		{"a pager on a line of its own", strings.ReplaceAll(clean, row, "--More--\n"+row)},
		{"blanks that do not break", strings.ReplaceAll(clean, "  1  c1n1", "\u00a0\u00a01\u00a0 c1n1")},
		{"tabs", strings.ReplaceAll(clean, "     x86", "\t  x86")},
		{"an indented quote", "    " + strings.ReplaceAll(clean, "\n", "\n    ")},
		{"a quoted mail", "> " + strings.ReplaceAll(strings.TrimSuffix(clean, "\n"), "\n", "\n> ")},
		{"all of it twice", clean + clean},
		{"lost blanks at the ends of lines", strings.ReplaceAll(clean, " \n", "\n")},
		{"blank lines between rows", strings.ReplaceAll(clean, "\n", "\n\n")},
		{"no prompts", strings.ReplaceAll(clean, "hpiLO-> ", "")},
		{"another prompt", strings.ReplaceAll(clean, "hpiLO-> ", "MP> ")},
		{"the chassis' name as prompt", strings.ReplaceAll(clean, "hpiLO-> ", "rack4-chassis.example-> ")},
		{"no newline at the end", strings.TrimSuffix(clean, "\n")},
		{"upper case", strings.NewReplacer("c1n1", "C1N1", "a0:1d:48:b5", "A0:1D:48:B5").Replace(clean)},
		{"the same row twice, after the pager", strings.ReplaceAll(clean, row, row+"\n"+row)},
		{"an async message behind the table", clean + "\nhpiLO->\n*** c3n1 was inserted ***\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := summary(moonshot.Parse(tt.text))
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestLatin1: a tag in Latin-1 is shown with question marks, and shifts no column.
func TestLatin1(t *testing.T) {
	text, err := os.ReadFile("testdata/transcripts/firmware-2021.txt")
	if err != nil {
		t.Fatal(err)
	}
	inv, err := moonshot.Parse(strings.Replace(string(text), "rack 3 On hold", "\xe9t\xe9 2024", 1))
	if err != nil {
		t.Fatal(err)
	}
	n := inv.Nodes[0]
	if got, want := n.AssetTag, "?t? 2024"; n.String() != "c1n1" || got != want || n.Power != bmc.On {
		t.Errorf("got tag %q, power %s, want %q, on", got, n.Power, want)
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       error
		says       string
	}{
		{"nothing", "", bmc.ErrUnreadable, "no table of MACs"},
		{"a banner", "hpiLO-> \n", bmc.ErrUnreadable, "no table of MACs"},
		{"a command that firmware does not know", "Invalid command\r\n", bmc.ErrUnreadable, `line 1: the chassis says "Invalid command"`},
		{"a user without rights", "\nYou do not have the privilege\n", bmc.ErrRefused, "line 2"},
		{"a locked account", "Account admin is locked\n", bmc.ErrRefused, "locked"},
		{"ten megabytes", strings.Repeat("garbage ", 10<<20/8), bmc.ErrUnreadable, "more than 1048576"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := moonshot.Parse(tt.text)
			if !errors.Is(err, tt.want) || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("got %v, want %v that says %q", err, tt.want, tt.says)
			}
		})
	}
}
