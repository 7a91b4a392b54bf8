package text

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/pools"
)

// Differences returns what is different between two nodes, each as a line.
func Differences(old, changed *pools.PoolNode) (lines []string) {
	was, is := fieldsOf(old), fieldsOf(changed)
	names := slices.Collect(maps.Keys(was))
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		switch a, b := was[name], is[name]; {
		case a == b:
		case a == "":
			lines = append(lines, name+": "+b)
		case b == "":
			lines = append(lines, name+": "+a+" → none")
		default:
			lines = append(lines, name+": "+a+" → "+b)
		}
	}
	return lines
}

// fieldsOf returns the fields of a node as text.
func fieldsOf(n *pools.PoolNode) map[string]string {
	var fields map[string]any
	if data, err := json.Marshal(n); err != nil || json.Unmarshal(data, &fields) != nil {
		return nil
	}
	out := map[string]string{}
	for name, v := range fields {
		switch v := v.(type) {
		case string:
			out[name] = v
		case []any:
			out[name] = strings.Trim(fmt.Sprint(v), "[]")
		default:
			text, _ := json.Marshal(v) // it was read from JSON
			out[name] = string(text)
		}
	}
	return out
}
