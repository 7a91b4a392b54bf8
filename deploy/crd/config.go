package crd

import (
	"encoding/json"
	"errors"
	"reflect"

	"drover/pools"
)

// ConfigSchema returns the JSON Schema of the config file, for editors, made from the types
// in the Go files of package pools, in dir. It does not say which keys are required: that
// depends on others, and drover check says it.
func ConfigSchema(dir string) ([]byte, error) {
	src, err := readSource(dir)
	if err != nil {
		return nil, err
	}
	b := &builder{source: src, config: true}
	s := b.schema(reflect.TypeFor[pools.Config](), "config")
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	doc := jsonSchema(s)
	doc["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	doc["title"] = "Config of drover"
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

// jsonSchema converts a schema of objects to one of JSON Schema, which can say that other
// keys are mistakes.
func jsonSchema(s *Schema) map[string]any {
	out := map[string]any{}
	set := func(key string, value any, there bool) {
		if there {
			out[key] = value
		}
	}
	set("description", s.Description, s.Description != "")
	set("pattern", s.Pattern, s.Pattern != "")
	set("enum", s.Enum, len(s.Enum) > 0)
	set("minimum", s.Minimum, s.Minimum != nil)
	set("maximum", s.Maximum, s.Maximum != nil)
	if s.AnyFields { // of several types
		return out
	}
	set("type", s.Type, s.Type != "")
	set("type", []string{"integer", "string"}, s.IntOrString)
	if s.Properties != nil {
		properties := map[string]any{}
		for name, p := range s.Properties {
			properties[name] = jsonSchema(p)
		}
		out["properties"], out["additionalProperties"] = properties, false
	}
	if s.Items != nil {
		out["items"] = jsonSchema(s.Items)
	}
	if s.Additional != nil {
		out["additionalProperties"] = jsonSchema(s.Additional)
	}
	return out
}
