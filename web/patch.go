package web

import (
	"encoding/json"
	"maps"
	"slices"

	"drover/pools"
)

// mergePatch applies a JSON merge patch to target (RFC 7386, section 2). It
// may change target.
func mergePatch(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok {
		t = map[string]any{}
	}
	for key, v := range p {
		if v == nil {
			delete(t, key)
		} else {
			t[key] = mergePatch(t[key], v)
		}
	}
	return t
}

// patchNode applies a patch to a node.
func patchNode(n pools.PoolNode, patch any) (pools.PoolNode, error) {
	data, err := json.Marshal(n)
	if err != nil {
		return n, err
	}
	old, err := parseJSON(data)
	if err != nil {
		return n, err
	}
	return parseNode(mergePatch(old, patch))
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
