// Package audit says what a change of a node changes, for an entry of the audit.
package audit

import (
	"encoding/json"
	"maps"
	"slices"

	"drover/pools"
)

// maxValue bounds a value, in bytes.
const maxValue = 256

// Changes returns the fields of a node that a change of it changes, with their JSON. Those of
// its power, which may have options with passwords, are not in it.
func Changes(c pools.NodeChange) (all []pools.AuditChange) {
	before, after := fieldsOf(c.Old), fieldsOf(c.New)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if before[key] != after[key] {
			all = append(all, pools.AuditChange{Field: key, Before: before[key], After: after[key]})
		}
	}
	return all
}

// fieldsOf returns the fields of a node as JSON; texts without quotes. There are none for
// nil.
func fieldsOf(n *pools.PoolNode) map[string]string {
	all := map[string]string{}
	if n == nil {
		return all
	}
	shown := *n
	shown.Power = nil
	var fields map[string]json.RawMessage
	b, err := json.Marshal(shown)
	if err != nil || json.Unmarshal(b, &fields) != nil {
		return all // nodes come as JSON
	}
	for key, value := range fields {
		text := string(value)
		var plain string
		if json.Unmarshal(value, &plain) == nil {
			text = plain
		}
		if len(text) > maxValue {
			text = text[:maxValue] + "..."
		}
		all[key] = text
	}
	return all
}
