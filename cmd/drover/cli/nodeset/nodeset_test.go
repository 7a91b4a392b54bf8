package nodeset_test

import (
	"strings"
	"testing"

	"drover/cmd/drover/cli/nodeset"
)

func TestExpand(t *testing.T) {
	for _, tt := range []struct{ list, want, err string }{
		{"m1", "m1", ""},
		{"m1, m2,m1", "m1 m2", ""},
		{"m1c[9-11]", "m1c9 m1c10 m1c11", ""},
		{"m1c[09-11]n1,x", "m1c09n1 m1c10n1 m1c11n1 x", ""},
		{"m[1,3-4]c[1-2]", "m1c1 m1c2 m3c1 m3c2 m4c1 m4c2", ""},
		{"m1c3[0-2]", "m1c30 m1c31 m1c32", ""},
		{"", "", ""},
		{"m[1-", "", "a [ without ]"},
		{"m1]", "", "a ] without ["},
		{"m[]", "", "want numbers"},
		{"m[a-f]", "", "want numbers"},
		{"m[-1]", "", "want numbers"},
		{"m[1-2-3]", "", "want numbers"},
		{"m[5-1]", "", "5 is more than 1"},
		{"m[1-9999999]", "", "more than 20000 names"},
		{"m[0-999]c[0-999]", "", "more than 20000 names"},
		{"m[0-9999999999999999999999]", "", "want numbers"},
	} {
		got, err := nodeset.Expand(tt.list)
		if strings.Join(got, " ") != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: got %q, %v; want %q, %q", tt.list, got, err, tt.want, tt.err)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("m1c[01-45]n1,x")
	f.Fuzz(func(t *testing.T, list string) {
		if names, err := nodeset.Expand(list); err == nil && len(names) > 20_000 {
			t.Errorf("%d names", len(names))
		}
	})
}
