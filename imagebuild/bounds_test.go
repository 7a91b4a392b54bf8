package imagebuild_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestFlattenBounds: archives of some kilobytes that are made to take gigabytes of memory
// are refused (finding M11).
func TestFlattenBounds(t *testing.T) {
	many := func(n int, name func(i int) string) []byte {
		var names []string
		for i := range n {
			names = append(names, name(i))
		}
		return gzipped(t, layerOf(t, names...))
	}
	deep := func(name string, n int) string { return strings.TrimSuffix(strings.Repeat(name+"/", n), "/") }
	for _, tt := range []struct {
		name  string
		layer []byte
		want  string
	}{
		{"3000 entries, each 2000 deep", many(3000, func(i int) string { return deep("a", 2000) + fmt.Sprintf("/%d", i) }), "more than 256 elements"},
		{"entries of other directories", many(2000, func(i int) string { return fmt.Sprintf("%d/", i) + deep("a", 250) }), "more than 262144 directories without an entry"},
		{"deep hard links", many(3000, func(i int) string { return fmt.Sprintf("%d>", i) + deep("a", 2000) }), "more than 256 elements"},
		{"deep whiteouts", many(3000, func(i int) string { return deep("a", 2000) + fmt.Sprintf("/.wh.%d", i) }), "more than 256 elements"},
		{"deep links", layerOf(t, "l@"+deep("a", 200), "l/m@"+deep("b", 200), "l/m/x"), "through links"},
		{"long links", layerOf(t, "l@"+deep(strings.Repeat("a", 250), 10), "l/m@"+deep(strings.Repeat("b", 250), 10), "l/m/x"), "through links"},
		{"links to far above", layerOf(t, "l@"+deep("..", 1000), "l/x"), "through links"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := flatten(t.TempDir(), true, tt.layer)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 400<<20 {
				t.Errorf("%d MB were allocated for an archive of %d kB", used>>20, len(tt.layer)>>10)
			}
		})
	}
	if _, err := flatten(t.TempDir(), true, many(3000, func(i int) string { return fmt.Sprintf("%d/%s", i%10, deep("a", 250)) })); err != nil {
		t.Errorf("many files of a few directories: %v", err)
	}
	chain := []string{"f0=x"}
	for i := range 10000 {
		chain = append(chain, fmt.Sprintf("f%d>f%d", i+1, i))
	}
	if _, err := flatten(t.TempDir(), true, layerOf(t, chain...)); err != nil {
		t.Errorf("a chain of hard links: %v", err)
	}
}
