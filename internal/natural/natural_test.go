package natural_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"drover/internal/natural"
)

func TestCompare(t *testing.T) {
	sorted := []string{"", "m", "m1", "m1c1", "m1c2", "m1c02", "m1c9n2", "m1c10n1", "m1c10n10", "m2", "m10c1", "n"}
	slices.SortFunc(sorted, natural.Compare)
	if got := strings.Join(sorted, " "); got != " m m1 m1c1 m1c02 m1c2 m1c9n2 m1c10n1 m1c10n10 m2 m10c1 n" {
		t.Errorf("got %s", got)
	}
	for _, a := range sorted {
		for _, b := range sorted {
			if x, y := natural.Compare(a, b), natural.Compare(b, a); x != -y || (x == 0) != (a == b) {
				t.Errorf("%q and %q: %d and %d", a, b, x, y)
			}
		}
	}
}

// Keys of names have their order.
func TestAppendKey(t *testing.T) {
	long := strings.Repeat("9", 300)
	names := []string{"", "0", "00", "007", "7", "07a", "7a", "10", "a", "a/1", "a:1", "a1", "a10", "a2", "a02b", "a2b", "1.2.3.4", "1.2.3.14", "\x00", "a\x00", long, "1" + long, "b" + long, "é1"}
	for _, a := range names {
		for _, b := range names {
			want := natural.Compare(a, b)
			got := bytes.Compare(natural.AppendKey(nil, a), natural.AppendKey(nil, b))
			if got == 0 {
				got = strings.Compare(a, b)
			}
			if got != want {
				t.Errorf("%.10q and %.10q: keys compare as %d, names as %d", a, b, got, want)
			}
		}
	}
}
