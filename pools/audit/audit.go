// Package audit says what a change changes, for an entry of the audit.
package audit

import (
	"encoding/json"
	"maps"
	"slices"

	"drover/pools"
)

// maxValue bounds a value, in bytes.
const maxValue = 256

// Changes returns the fields of a node that a change of it changes. Those of its power, which
// may have options with passwords, are not in it.
func Changes(c pools.NodeChange) []pools.AuditChange {
	var before, after any
	if c.Old != nil {
		before = shown(*c.Old)
	}
	if c.New != nil {
		after = shown(*c.New)
	}
	return Between(before, after)
}

func shown(n pools.PoolNode) pools.PoolNode {
	n.Power = nil
	return n
}

// Between returns the fields that are not the same before and after a change, with their JSON.
// nil is something that does not exist. It must have no secrets.
func Between(old, fresh any) (all []pools.AuditChange) {
	before, after := fieldsOf(old), fieldsOf(fresh)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if before[key] != after[key] {
			all = append(all, pools.AuditChange{Field: key, Before: before[key], After: after[key]})
		}
	}
	return all
}

// fieldsOf returns the fields of something as JSON; texts without quotes. There are none for
// nil.
func fieldsOf(v any) map[string]string {
	all := map[string]string{}
	var fields map[string]json.RawMessage
	b, err := json.Marshal(v)
	if err != nil || json.Unmarshal(b, &fields) != nil {
		return all // all of it comes as JSON
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
