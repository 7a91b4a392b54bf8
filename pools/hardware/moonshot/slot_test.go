package moonshot_test

import (
	"strings"
	"testing"

	"drover/pools/hardware/moonshot"
)

func TestParseSlot(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"c1n1", "c1n1"}, {"C45N8", "c45n8"}, {"c07n1", "c7n1"},
		{"c0n1", "no chassis has a slot"}, {"c46n1", "no chassis has a slot"}, {"c1n9", "no chassis has a slot"}, {"c1n0", "no chassis has a slot"},
		{"", "is no slot"}, {"c1", "is no slot"}, {"1n1", "is no slot"}, {"c1n", "is no slot"}, {"c1n1n1", "is no slot"},
		{"c-1n1", "is no slot"}, {"c111n1", "is no slot"}, {"c1n+1", "is no slot"}, {" c1n1", "is no slot"},
	} {
		s, err := moonshot.ParseSlot(tt.text)
		got := s.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
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
		{text: "9-5", err: `"9-5" chooses no slots`},
		{text: "46", err: "from 1 to 45"},
		{text: "0", err: "chooses no slots"},
		{text: "c1n1,", err: `"" chooses no slots`},
		{text: "c1n9", err: "no chassis has a slot"},
		{text: "compute", err: "chooses no slots"},
	} {
		sel, err := moonshot.ParseSelection(tt.text)
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
				s, err := moonshot.ParseSlot(w)
				if err != nil {
					t.Fatal(err)
				}
				if got := sel.Has(s); got != want {
					t.Errorf("%q has %s: got %t, want %t", tt.text, w, got, want)
				}
			}
		}
	}
}
