package moonshot_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"drover/hardware/bmc"
	"drover/hardware/moonshot"
)

// TestBombs parses outputs of one megabyte that are made to take hours or gigabytes, as a
// hostile chassis could send them (finding H12). Each must give an error or an
// inventory of a usual size.
func TestBombs(t *testing.T) {
	upTo := func(head, line string) string {
		return head + strings.Repeat(line, (bmc.MaxAnswer-len(head))/len(line))
	}
	const macs = "Slot ID   NIC 1 (Switch A)\n---- ---- -----------------\n"
	for _, tt := range []struct{ name, text string }{
		{"columns without end", upTo("", "- ")},
		{"columns and rows", upTo("Slot ID "+strings.Repeat("NIC 1 ", 60)+"\n"+strings.Repeat("-- ", 64)+"\n", "1 c1n1 94:57:a5:00:00:01\n")},
		{"rows without end", upTo(macs, " 1   c1n1 94:57:a5:00:00:01\n")},
		{"rows without slots", upTo(macs, "x\n")},
		{"rows with other slots", upTo(macs, "c9n9\n")},
		{"rulers without end", upTo("Slot ID\n", "-- --\n")},
		{"a wide terminal and many lines", upTo("Slot ID\n- "+strings.Repeat("-", 1<<18)+"\n--\n1 c1n1\n", "abcd\n")},
		{"a usual terminal and many lines", upTo("Slot ID\n- "+strings.Repeat("-", 78)+"\n--\n1 c1n1\n", "abcd\n")},
		{"tabs", upTo(macs, "\t")},
		{"keys", upTo(macs+" 1   c1n1 94:57:a5:00:00:01\nc1n1:\n", "a:b\n")},
		{"prompts", upTo("", "hpiLO-> show blades b1\nNIC 1 MAC: 94:57:a5:00:00:01\n")},
		{"escapes", upTo(macs, "\x1b[")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			inv, err := moonshot.Parse(tt.text)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
				t.Errorf("%d MB were allocated", used>>20)
			}
			switch {
			case err != nil && !errors.Is(err, bmc.ErrUnreadable):
				t.Errorf("got %v, want %v", err, bmc.ErrUnreadable)
			case err == nil && len(inv.Notes()) > 2000:
				t.Errorf("got %d notes", len(inv.Notes()))
			}
		})
	}
}
