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
	case pools.Retention:
		return Schema{"type": "string", "pattern": `^(0|infinite|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`}
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
	name := nameOf(t)
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

// request returns the schema of a body of a type: what must be there, and null only where it means
// something. In a merge patch nothing must be there, and null takes a value away.
func (b *builder) request(t reflect.Type, patch bool) Schema {
	suffix := "Request"
	if patch {
		suffix = "Patch"
	}
	in := strings.TrimSuffix(nameOf(t), "Request") + suffix
	if b.components[in] == nil {
		properties, required := map[string]Schema{}, []string{}
		b.components[in] = Schema{"type": "object"} // the type may contain itself
		b.requestFields(t, patch, properties, &required)
		s := Schema{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 && !patch {
			s["required"] = required
		}
		b.components[in] = s
	}
	return Schema{"$ref": "#/components/schemas/" + in}
}

func (b *builder) requestFields(t reflect.Type, patch bool, properties map[string]Schema, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			b.requestFields(f.Type, patch, properties, required)
			continue
		case !f.IsExported() || name == "" || name == "-":
			continue
		}
		s := b.requestValue(f.Type, patch)
		if words := wordsOf(t, name); words != nil {
			s = words
		}
		if patch || f.Type.Kind() == reflect.Pointer { // nil has a meaning
			s = orNull(s)
		}
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
		properties[name] = s
	}
}

func orNull(s Schema) Schema { return Schema{"anyOf": []Schema{s, {"type": "null"}}} }

// wordsOf returns the schema of a field of type string that takes some words alone; nil for others.
func wordsOf(t reflect.Type, field string) Schema {
	switch {
	case t == reflect.TypeFor[pools.PowerRequest]() && field == "action":
		return Schema{"type": "string", "enum": []string{"on", "off", "cycle", "pxe", "status"}}
	case t == reflect.TypeFor[pools.NextBootRequest]() && field == "nextBoot":
		return Schema{"type": "string", "pattern": `^(local|rescue|image=.+)$`}
	case t == reflect.TypeFor[pools.RestoreRequest]() && field == "sha256":
		return Schema{"type": "string", "pattern": `^[0-9a-f]{64}$`}
	}
	return nil
}

// requestValue is [builder.request] for a value in a body.
func (b *builder) requestValue(t reflect.Type, patch bool) Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case textSchema(t) == nil && !t.Implements(marshalsText) && t.Kind() == reflect.Struct:
		return b.request(t, patch)
	case textSchema(t) == nil && t.Kind() == reflect.Slice: // a patch replaces it as a whole (RFC 7386)
		return Schema{"type": "array", "items": b.requestValue(t.Elem(), false)}
	case t.Kind() == reflect.Map:
		value := b.requestValue(t.Elem(), patch)
		if patch {
			value = orNull(value)
		}
		return Schema{"type": "object", "additionalProperties": value}
	}
	return b.schema(t)
}

// nameOf returns the name of a component.
func nameOf(t reflect.Type) string { return strings.ToUpper(t.Name()[:1]) + t.Name()[1:] }
