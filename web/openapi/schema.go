package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"drover/pools"
)

// Schema is a schema of JSON Schema 2020-12.
type Schema map[string]any

// builder makes the schemas of types. Those of structs are components, by name.
type builder struct{ components map[string]Schema }

// Texts are the schemas of types that are written as text in their own form.
func textSchema(t reflect.Type) Schema {
	switch reflect.Zero(t).Interface().(type) {
	case time.Time:
		return Schema{"type": "string", "format": "date-time"}
	case netip.Addr:
		return Schema{"type": "string", "anyOf": []Schema{{"format": "ipv4"}, {"format": "ipv6"}}}
	case netip.Prefix:
		return Schema{"type": "string", "pattern": `^[0-9A-Fa-f:.]+/[0-9]+$`}
	case pools.MAC:
		return Schema{"type": "string", "pattern": `^([0-9A-Fa-f]{2}[:-]?){5}[0-9A-Fa-f]{2}$`}
	case pools.Duration:
		return Schema{"type": "string", "pattern": `^(infinite|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`}
	case pools.Range:
		return Schema{"type": "string", "pattern": `^[0-9A-Fa-f:.]+-[0-9A-Fa-f:.]+$`}
	case pools.Arch:
		return Schema{"type": []string{"string", "integer"}}
	case pools.Strings:
		return Schema{"anyOf": []Schema{{"type": "array", "items": Schema{"type": "string"}}, {"type": "string"}}}
	case pools.Role:
		return Schema{"type": "string", "enum": pools.Roles()}
	case pools.LeaseState:
		return Schema{"type": "string", "enum": pools.LeaseStates()}
	}
	return nil
}

var (
	marshalsText = reflect.TypeFor[encoding.TextMarshaler]()
	marshalsJSON = reflect.TypeFor[json.Marshaler]()
)

// schema returns the schema of a type as encoding/json writes it. It panics for a type
// without one, which a test of the table shows.
func (b *builder) schema(t reflect.Type) Schema {
	if s := textSchema(t); s != nil {
		return s
	}
	if t.Implements(marshalsJSON) {
		panic(fmt.Sprintf("%s writes its own JSON: give it a schema", t))
	}
	if t.Implements(marshalsText) {
		return Schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.schema(t.Elem())
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint16:
		return Schema{"type": "integer"}
	case reflect.Interface: // of a config of another program
		return Schema{}
	case reflect.Slice:
		return Schema{"type": "array", "items": b.schema(t.Elem())}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": b.schema(t.Elem())}
	case reflect.Struct:
		return b.component(t)
	}
	panic(fmt.Sprintf("no schema for the type %s", t))
}

// component returns a reference to the schema of a struct.
func (b *builder) component(t reflect.Type) Schema {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if b.components[name] == nil {
		properties, required := map[string]Schema{}, []string{}
		b.components[name] = Schema{"type": "object"} // the type may contain itself
		b.fields(t, properties, &required)
		b.components[name] = Schema{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			b.components[name]["required"] = required
		}
	}
	return Schema{"$ref": "#/components/schemas/" + name}
}

// fields adds the fields of a struct, those of embedded structs included.
func (b *builder) fields(t reflect.Type, properties map[string]Schema, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			b.fields(f.Type, properties, required)
			continue
		case !f.IsExported() || name == "-" || name == "":
			continue
		}
		s := b.schema(f.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
			switch k := f.Type.Kind(); {
			case k == reflect.Slice || k == reflect.Map: // nil is null
				s = Schema{"anyOf": []Schema{s, {"type": "null"}}}
			case f.Type == reflect.TypeFor[netip.Addr]() || f.Type == reflect.TypeFor[netip.Prefix](): // there may be none
				s = Schema{"anyOf": []Schema{s, {"const": ""}}}
			}
		}
		properties[name] = s
	}
}

// request returns the schema of a body of a type: null takes a value away, and only drover
// knows which fields are needed.
func (b *builder) request(t reflect.Type) Schema {
	s := b.schema(t)
	name, ok := strings.CutPrefix(fmt.Sprint(s["$ref"]), "#/components/schemas/")
	if !ok {
		return Schema{"anyOf": []Schema{s, {"type": "null"}}}
	}
	in := name + "Request"
	if b.components[in] == nil {
		b.components[in] = Schema{"type": "object"}
		properties := map[string]Schema{}
		b.requestFields(t, properties)
		b.components[in] = Schema{"type": "object", "properties": properties, "additionalProperties": false}
	}
	return Schema{"$ref": "#/components/schemas/" + in}
}

func (b *builder) requestFields(t reflect.Type, properties map[string]Schema) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			b.requestFields(f.Type, properties)
		case f.IsExported() && name != "" && name != "-":
			properties[name] = Schema{"anyOf": []Schema{b.requestValue(f.Type), {"type": "null"}}}
		}
	}
}

// requestValue is [builder.request] for a value in a body.
func (b *builder) requestValue(t reflect.Type) Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case textSchema(t) == nil && !t.Implements(marshalsText) && t.Kind() == reflect.Struct:
		return b.request(t)
	case textSchema(t) == nil && t.Kind() == reflect.Slice:
		return Schema{"type": "array", "items": b.requestValue(t.Elem())}
	case t.Kind() == reflect.Map:
		return Schema{"type": "object", "additionalProperties": Schema{"anyOf": []Schema{b.requestValue(t.Elem()), {"type": "null"}}}}
	}
	return b.schema(t)
}
