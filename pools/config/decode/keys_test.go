package decode_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/decode"
)

// TestLongKeys: the memory that a document takes is in proportion to its size, however long its
// keys are.
func TestLongKeys(t *testing.T) {
	items := strings.Repeat(`"a",`, 4000) + `"a"`
	deep := strings.Repeat(`{"`+strings.Repeat("k", 1000)+`":`, 14) + "[" + items + "]" + strings.Repeat("}", 14)
	for _, tt := range []struct{ name, body, want string }{
		{"a long key", fmt.Sprintf(`{"dhcpOptions": {%q: [%s]}}`, strings.Repeat("k", 500_000), items), "dhcpOptions: the key \"kkkk"},
		{"many long keys", `{"network": {` + strings.Repeat(fmt.Sprintf(`%q: "x",`, strings.Repeat("k", 100_000)), 20) + `"x": "y"}}`, "has 100000 bytes, more than 1024"},
		{"a list", fmt.Sprintf(`{"dhcpOptions": {%q: [%s]}}`, strings.Repeat("k", 1000), items), ""},
		{"a list of wrong values", fmt.Sprintf(`{"dhcpOptions": {%q: [%s]}}`, strings.Repeat("k", 1000), strings.ReplaceAll(items, `"a"`, "1")), "more mistakes"},
		{"a tree", fmt.Sprintf(`{"network": {%q: [%s]}}`, strings.Repeat("k", 1000), items), ""},
		{"a deep tree", `{"network": ` + deep + `}`, "or 2048 with the keys around it"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, errs := decode.Object("Tag t", []byte(tt.body), new(pools.Tag))
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Errorf("%s: %d bytes take %d MB", tt.name, len(tt.body), n>>20)
		}
		if got := errs.Error(); tt.want == "" && got != "" || !strings.Contains(got, tt.want) || len(got) > 1<<20 {
			t.Errorf("%s: got %.500s, want %q", tt.name, got, tt.want)
		}
	}
}
