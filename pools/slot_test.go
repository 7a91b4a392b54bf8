package pools_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/pools"
)

func ExampleParseSelection() {
	sel, err := pools.ParseSelection("c1n1,c3,5-9")
	fmt.Println(sel.Has(pools.Slot{Cartridge: 7, Node: 2}), sel.Has(pools.Slot{Cartridge: 1, Node: 2}), err)
	// Output: true false <nil>
}

func TestParseSlot(t *testing.T) {
	const none, outside = "no slot", "in no chassis"
	for _, tt := range []struct{ text, want string }{
		{"c1n1", "c1n1"}, {"C45N8", "c45n8"}, {"c07n1", "c7n1"},
		{"c0n1", outside}, {"c46n1", outside}, {"c1n9", outside}, {"c1n0", outside},
		{"", none}, {"c1", none}, {"1n1", none}, {"c1n", none}, {"c1n1n1", none},
		{"c-1n1", none}, {"c111n1", none}, {"c1n+1", none}, {" c1n1", none},
	} {
		slot, ok := pools.ParseSlot(tt.text)
		got := slot.String()
		switch {
		case !ok:
			got = none
		case !slot.Valid():
			got = outside
		}
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestSelection(t *testing.T) {
	for _, tt := range []struct{ text, has, hasNot, err string }{
		{text: "", has: "c1n1 c45n8"},
		{text: "ALL", has: "c1n1 c45n8"},
		{text: "c1n1,c3,5-9", has: "c1n1 c3n1 c3n4 c5n1 c9n8", hasNot: "c1n2 c2n1 c4n1 c10n1"},
		{text: "c5-c6, 7", has: "c5n1 c6n1 c7n1", hasNot: "c8n1"},
		{text: "C2N1", has: "c2n1", hasNot: "c2n2"},
		{text: "9-5", err: `"9-5" chooses no nodes`},
		{text: "46", err: "from 1 to 45"},
		{text: "0", err: "chooses no nodes"},
		{text: "c1n1,", err: `"" chooses no nodes`},
		{text: "c1n9", err: `"c1n9" chooses no nodes`},
		{text: "compute", err: "chooses no nodes"},
	} {
		sel, err := pools.ParseSelection(tt.text)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: got error %v, want %q", tt.text, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
		}
		for word, want := range map[string]bool{tt.has: true, tt.hasNot: false} {
			for w := range strings.FieldsSeq(word) {
				s, _ := pools.ParseSlot(w)
				if got := sel.Has(s); got != want {
					t.Errorf("%q has %s: got %t, want %t", tt.text, w, got, want)
				}
			}
		}
	}
}
