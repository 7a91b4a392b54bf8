package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/decode"
)

// TestMergeKeys: a mapping has the keys of others by <<, and its own first.
func TestMergeKeys(t *testing.T) {
	const base = `
base: &b
  modules: [nvidia]
  sysctls: {a: "1", b: "2"}
other: &o
  modules: [mlx5_core]
  timezone: UTC
`
	for in, want := range map[string]string{
		"x: {<<: *b}":                    "[nvidia] map[a:1 b:2] ",
		"x: {timezone: UTC, <<: *b}":     "[nvidia] map[a:1 b:2] UTC",
		"x: {<<: *b, modules: [own]}":    "[own] map[a:1 b:2] ",
		"x: {<<: [*o, *b]}":              "[mlx5_core] map[a:1 b:2] UTC",
		"x: {<<: [*b, {timezone: UTC}]}": "[nvidia] map[a:1 b:2] UTC",
		"y: &y {<<: *o}\nx: {<<: *y}":    "[mlx5_core] map[] UTC",
	} {
		tags := map[string]pools.Tag{}
		lines, errs := decode.YAML("x.yaml", []byte(base+in), &tags)
		x := tags["x"]
		if got := fmt.Sprint(x.Modules.Items, " ", x.Sysctls, " ", x.Timezone); got != want || len(errs) > 0 {
			t.Errorf("%s: got %s, %v, want %s", in, got, errs, want)
		}
		if fmt.Sprint(x.Modules.Items) == "[nvidia]" && lines["x.modules"] != 3 {
			t.Errorf("%s: modules are in line %d, want that of the alias", in, lines["x.modules"])
		}
	}
	for in, want := range map[string]string{
		"x: {<<: debug}":         "x.<<: want an alias of keys with values (write <<: *name, or <<: [*name, *other])",
		"x: &x {<<: *x}":         "more than 16 merge keys in one another",
		"x: {<<: *b, modu: 1}":   `unknown key "x.modu"`,
		"x: {<<: *b, \"<<\": 1}": `unknown key "x.<<"`,
	} {
		tags := map[string]pools.Tag{}
		if _, errs := decode.YAML("x.yaml", []byte(base+in), &tags); len(errs) != 1 || !strings.Contains(errs.Error(), want) {
			t.Errorf("%s: got %v, want %q", in, errs, want)
		}
	}
}
