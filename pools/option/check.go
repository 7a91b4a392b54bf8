package option

import (
	"fmt"
	"maps"
	"slices"
)

// Check encodes the entries of dhcpOptions in the order of their keys. It calls fail for each
// that is wrong, with the remedy as [Parse] returns it.
func Check[S ~[]string](options map[string]S, fail func(key, hint string, err error)) {
	seen, whole := map[ID]string{}, map[ID]string{}
	isPart := map[ID]bool{}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		o, hint, err := Parse(key, options[key])
		if err != nil {
			fail(key, hint, err)
			continue
		}
		if first, dup := seen[o.ID]; dup {
			fail(key, "remove one", fmt.Errorf("DHCP option %s is set twice, also as %s", key, first))
		}
		seen[o.ID] = key
		if o.Code6 != 0 {
			continue
		}
		all := ID{Code: o.Code, Class: o.Class}
		if first, mixed := whole[all]; mixed && isPart[all] != o.Part {
			fail(key, "write all of it as parts, or none", fmt.Errorf("DHCP option %s is set as a whole and in parts, by %s", key, first))
		}
		whole[all], isPart[all] = key, o.Part
	}
}
