package pools

import (
	"encoding/json"
	"maps"
	"slices"
)

// AuditChange is a field of what an [AuditEntry] is about, before and after. Empty: it was, or
// is, not set.
type AuditChange struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// maxAuditValue bounds a value in the audit, in bytes.
const maxAuditValue = 256

// Changes returns the fields of a node that a change of it changes, with their JSON. Those of
// its power, which may have options with passwords, are not in it.
func (c NodeChange) Changes() (all []AuditChange) {
	before, after := auditFields(c.Old), auditFields(c.New)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if before[key] != after[key] {
			all = append(all, AuditChange{key, before[key], after[key]})
		}
	}
	return all
}

// auditFields returns the fields of a node as JSON; texts without quotes. There are none for
// nil.
func auditFields(n *PoolNode) map[string]string {
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
		if len(text) > maxAuditValue {
			text = text[:maxAuditValue] + "..."
		}
		all[key] = text
	}
	return all
}
