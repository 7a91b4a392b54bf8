package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"drover/pools"
)

// maxDepth bounds how deep a JSON value nests. A node needs two.
const maxDepth = 16

// parseJSON reads exactly one JSON value, strictly: valid UTF-8, no duplicate
// keys (RFC 8259 leaves open which one counts, so that two programs can read
// two different nodes from one text). Objects become map[string]any and
// numbers json.Number.
func parseJSON(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := parseValue(dec, 0)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the body is not JSON: it ends too early")
	case err != nil:
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body has more than one JSON value")
	}
	return v, nil
}

func parseValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the body nests more than %d deep", maxDepth)
	}
	t, err := token(dec)
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return parseObject(dec, depth)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := parseValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := token(dec)
		return list, err
	}
	return t, nil
}

func parseObject(dec *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for dec.More() {
		t, err := token(dec)
		if err != nil {
			return nil, err
		}
		key, _ := t.(string) // the decoder lets nothing else through
		if _, ok := object[key]; ok {
			return nil, fmt.Errorf("field %q is there twice", key)
		}
		if object[key], err = parseValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := token(dec)
	return object, err
}

func token(dec *json.Decoder) (json.Token, error) {
	t, err := dec.Token()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("the body is not JSON: %w at byte %d", syntax, syntax.Offset)
	}
	return t, err
}

// parseNode makes a node from what parseJSON returned. Every unknown field and
// every value of a wrong kind is reported.
func parseNode(v any) (pools.PoolNode, error) {
	var n pools.PoolNode
	object, ok := v.(map[string]any)
	if !ok {
		return n, fmt.Errorf(`a node is an object such as {"pool": "compute", "name": "n1", "macs": ["52:54:00:12:34:56"], "ip": "10.0.0.5"}`)
	}
	var errs []error
	fields := []struct {
		name string
		read func(v any) error
	}{
		{"pool", func(v any) (err error) { n.Pool, err = text(v); return err }},
		{"name", func(v any) (err error) { n.Name, err = text(v); return err }},
		{"macs", func(v any) error {
			return each(v, func(s string) error {
				mac, err := pools.ParseMAC(s)
				n.MACs = append(n.MACs, mac)
				return err
			})
		}},
		{"ip", func(v any) error {
			s, err := text(v)
			if err != nil {
				return err
			}
			if err := n.IP.UnmarshalText([]byte(s)); err != nil {
				return fmt.Errorf("%q is not an IP address", s)
			}
			return nil
		}},
		{"tags", func(v any) error {
			return each(v, func(s string) error { n.Tags = append(n.Tags, s); return nil })
		}},
		{"match", func(v any) (err error) { n.Match, err = parseMatch(v); return err }},
		{"dhcpOptions", func(v any) (err error) { n.DHCPOptions, err = parseOptions(v); return err }},
		{"place", func(v any) (err error) { n.Place, err = parsePlace(v); return err }},
		{"power", func(any) error {
			return errors.New("only the config file says it: it names programs and files of the server")
		}},
		{"ignore", func(v any) (err error) { n.Ignore, err = flag(v); return err }},
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
		v := object[f.name]
		delete(object, f.name)
		if v == nil { // null is as good as absent
			continue
		}
		if err := f.read(v); err != nil {
			errs = append(errs, fmt.Errorf("field %q: %w", f.name, err))
		}
	}
	for _, key := range sortedKeys(object) {
		errs = append(errs, fmt.Errorf("unknown field %q (a node has %s)", key, strings.Join(names, ", ")))
	}
	return n, errors.Join(errs...)
}

func parsePlace(v any) (p pools.Place, err error) {
	object, ok := v.(map[string]any)
	chassis, slot := object["chassis"], object["slot"]
	if !ok || len(object) != 2 || chassis == nil || slot == nil {
		return p, errors.New(`want an object such as {"chassis": "m1", "slot": "c12n1"}`)
	}
	p.Chassis, err = text(chassis)
	if err == nil {
		p.Slot, err = text(slot)
	}
	return p, err
}

func flag(v any) (bool, error) {
	if on, ok := v.(bool); ok {
		return on, nil
	}
	return false, fmt.Errorf("want true or false, not %s", kind(v))
}

func text(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	return "", fmt.Errorf("want a string, not %s", kind(v))
}

// each reads a list of strings.
func each(v any, read func(string) error) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("want a list of strings, not %s", kind(v))
	}
	for _, item := range list {
		s, err := text(item)
		if err == nil {
			err = read(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}
