package natural_test

import (
	"slices"
	"strings"
	"testing"

	"drover/pools/natural"
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
