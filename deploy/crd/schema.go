// Package crd makes the CustomResourceDefinitions of drover's objects from the types of the
// config in package pools: their fields, the comments on them, and the constants of their
// values. Its test keeps deploy/charts/drover/crds and the reference in docs/objects.md
// equal to them:
//
//	go test ./deploy/crd -update
//
// It does not check objects: API servers do, by the schemas, and drover does.
//
// controller-gen (v0.23.0) cannot make them: it ends with an error at a generic type, such as
// pools.List, its rules are constants in comments, where ours have the flags and ports of the
// control plane, and it cannot leave fields out that a type has for the config file alone. Nor
// would it make the JSON Schema of the config file, or the reference.
package crd

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"drover/pools"
)

// Schema is the part of an OpenAPI v3 schema that structural schemas need.
type Schema struct {
	Description string             `json:"description,omitempty"`
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Maximum     *int               `json:"maximum,omitempty"`
	MaxLength   int                `json:"maxLength,omitempty"`
	MaxItems    int                `json:"maxItems,omitempty"`
	AnyOf       []Schema           `json:"anyOf,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Additional  *Schema            `json:"additionalProperties,omitempty"`
	IntOrString bool               `json:"x-kubernetes-int-or-string,omitempty"`
	AnyFields   bool               `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	ListType    string             `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys []string           `json:"x-kubernetes-list-map-keys,omitempty"`
	Rules       []Rule             `json:"x-kubernetes-validations,omitempty"`
}

// Rule is a validation in CEL.
type Rule struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// builder makes schemas of types.
type builder struct {
	source *source
	config bool // of the config file, and not of objects
	errs   []error
}

// texts are the schemas of types that are written as text, by the rules of their
// UnmarshalText. A pattern matches all that these take.
var texts = map[reflect.Type]Schema{
	reflect.TypeFor[netip.Addr]():      {Type: "string", AnyOf: []Schema{{Format: "ipv4"}, {Format: "ipv6"}}},
	reflect.TypeFor[netip.Prefix]():    {Type: "string", Format: "cidr"},
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[pools.MAC]():       {Type: "string", Pattern: `^(([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}|([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}|[0-9A-Fa-f]{12})$`},
	reflect.TypeFor[pools.Duration]():  {Type: "string", Pattern: `^(infinite|\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`},
	reflect.TypeFor[pools.Range]():     {Type: "string", Pattern: `^(\s*[0-9A-Fa-f:.]+\s*-\s*[0-9A-Fa-f:.]+\s*)?$`},
	reflect.TypeFor[pools.Prefixes]():  {Type: "string", Pattern: `^\s*[0-9A-Fa-f:.]+/[0-9]+\s*(,\s*[0-9A-Fa-f:.]+/[0-9]+\s*)*$`},
	reflect.TypeFor[pools.Address32](): {Type: "string", Pattern: `^0x[0-9A-Fa-f]+$`},
	reflect.TypeFor[pools.Arch]():      {IntOrString: true},
	reflect.TypeFor[pools.Retention](): {IntOrString: true},
	reflect.TypeFor[pools.Seconds]():   {Type: "integer", Minimum: new(0), Maximum: new(3600)},
	reflect.TypeFor[pools.Share]():     {Type: "string", Pattern: `^[0-9]{1,3}(\.[0-9]{1,2})?%$`},
	reflect.TypeFor[pools.Secret]():    {Type: "string"},
	reflect.TypeFor[pools.Tree]():      {Type: "object", AnyFields: true},
}

// text returns the schema of a type that is written as text; nil for others.
func text(t reflect.Type) *Schema {
	switch t {
	case reflect.TypeFor[pools.KernelArgs]():
		return union("a text")
	case reflect.TypeFor[pools.Strings]():
		return union("a text, or a list of them")
	}
	if s, ok := texts[t]; ok {
		return &s
	}
	return nil
}

// union is the schema of a value of several types. Structural schemas cannot say which:
// drover checks it.
func union(forms string) *Schema {
	if !strings.Contains(forms, " or ") {
		forms += ", or {replace: ...}"
	}
	return &Schema{AnyFields: true, Description: "Written as " + forms + "."}
}

// schema returns the schema of a type. The place is for errors.
func (b *builder) schema(t reflect.Type, place string) *Schema {
	if t.Kind() == reflect.Pointer {
		return b.schema(t.Elem(), place)
	}
	if b.config && t == reflect.TypeFor[pools.Secret]() {
		return union("a text, or {fromFile: ...}")
	}
	if s := text(t); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.String:
		return &Schema{Type: "string", Enum: b.source.values[t.Name()]}
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Int:
		return &Schema{Type: "integer", Format: "int32"}
	case reflect.Int64:
		return &Schema{Type: "integer", Format: "int64"}
	case reflect.Slice:
		return &Schema{Type: "array", Items: b.schema(t.Elem(), place), ListType: "atomic"}
	case reflect.Map:
		return &Schema{Type: "object", Additional: b.schema(t.Elem(), place)}
	case reflect.Struct:
		if strings.HasPrefix(t.Name(), "List[") {
			return union("a list")
		}
		s := &Schema{Type: "object", Properties: map[string]*Schema{}}
		b.fields(t, s)
		s.Rules = rules[typeName(t)]
		return s
	}
	b.errs = append(b.errs, fmt.Errorf("%s: no schema for type %s", place, t))
	return &Schema{AnyFields: true}
}

// fields adds the properties of a struct, those of embedded structs included.
func (b *builder) fields(t reflect.Type, s *Schema) {
	for f := range t.Fields() {
		if f.Anonymous {
			b.fields(f.Type, s)
			b.leaveOut(t, s)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		key := typeName(t) + "." + name
		if name == "" || name == "-" || leftOut[key] && !b.config {
			continue
		}
		p := b.schema(f.Type, key)
		about := b.source.fields[typeName(t)+"."+f.Name]
		if about == "" || strings.HasPrefix(about, "Default") {
			about = strings.TrimSpace(b.source.types[typeName(elem(f.Type))] + " " + about)
		}
		if about == "" && !b.config {
			b.errs = append(b.errs, fmt.Errorf("%s has no comment to explain it", key))
		}
		p.Description = strings.TrimSpace(about + " " + p.Description)
		if change, ok := amend[key]; ok && !b.config {
			change(p)
		}
		s.Properties[name] = p
		if !strings.Contains(options, "omit") && !optional[key] {
			s.Required = append(s.Required, name)
		}
	}
	slices.Sort(s.Required)
}

// leaveOut removes properties of an embedded struct that the one around it does not have.
func (b *builder) leaveOut(t reflect.Type, s *Schema) {
	left := func(name string) bool { return leftOut[typeName(t)+"."+name] && !b.config }
	maps.DeleteFunc(s.Properties, func(name string, _ *Schema) bool { return left(name) })
	s.Required = slices.DeleteFunc(s.Required, left)
}

// elem returns the type of the values in pointers, lists and maps.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

var typeArgs = regexp.MustCompile(`\[.*`)

// typeName returns the name of a type without its arguments.
func typeName(t reflect.Type) string { return typeArgs.ReplaceAllString(t.Name(), "") }
