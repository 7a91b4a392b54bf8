package crd_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"gopkg.in/yaml.v3"

	"drover/deploy/crd"
	"drover/e2e/fixture"
)

// TestConfigSchema keeps the schema that drover config schema prints equal to the types, and
// holds that it knows each key of a large config.
func TestConfigSchema(t *testing.T) {
	text, err := crd.ConfigSchema("../../pools")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "../../cmd/drover/configfile/schema.json", text)
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	const file = "../../pools/resolve/testdata/farm.yaml"
	var farm any
	if err := yaml.Unmarshal([]byte(fixture.ReadFile(t, file)), &farm); err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults(schema, asJSON(farm), "config") {
		t.Error(fault)
	}
	wrong := map[string]any{"sever": map[string]any{}, "pools": []any{map[string]any{"name": 7.0, "catchAll": true}}, "subnets": "all"}
	if got := faults(schema, wrong, "config"); len(got) != 4 {
		t.Errorf("of 4 mistakes the schema shows %q", got)
	}
}

// asJSON returns a value of YAML with texts as keys, and floats as numbers.
func asJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = asJSON(value)
		}
	case map[any]any:
		out := map[string]any{}
		for key, value := range v {
			out[fmt.Sprint(key)] = asJSON(value)
		}
		return out
	case []any:
		for i, item := range v {
			v[i] = asJSON(item)
		}
	case int:
		return float64(v)
	}
	return v
}

// faults returns the values of v that a schema does not allow, as an editor does: unknown
// keys, and values of another type.
func faults(schema map[string]any, v any, place string) (all []string) {
	kind, _ := schema["type"].(string)
	switch v := v.(type) {
	case map[string]any:
		if kind != "object" && kind != "" {
			return []string{place + " is an object"}
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, value := range v {
			sub, known := properties[key].(map[string]any)
			if !known {
				sub, known = schema["additionalProperties"].(map[string]any)
			}
			switch {
			case known:
				all = append(all, faults(sub, value, place+"."+key)...)
			case kind == "object":
				all = append(all, place+"."+key+" is unknown")
			}
		}
	case []any:
		if kind != "array" && kind != "" {
			return []string{place + " is a list"}
		}
		items, _ := schema["items"].(map[string]any)
		for i, item := range v {
			all = append(all, faults(items, item, fmt.Sprintf("%s[%d]", place, i))...)
		}
	case string:
		if kind != "string" && kind != "" {
			all = append(all, place+" is a text")
		}
	case float64:
		if kind == "object" || kind == "array" || kind == "boolean" || kind == "string" {
			all = append(all, place+" is a number")
		}
	case bool:
		if kind != "boolean" && kind != "" {
			all = append(all, place+" is true or false")
		}
	}
	return all
}
