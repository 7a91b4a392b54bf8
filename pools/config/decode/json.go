package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"drover/pools/config/mistake"
)

// Bounds of a body. Decoding needs about a hundred times the memory of the text. A
// change of 10 000 nodes has some 60 000 commas.
const (
	maxCommas   = 1 << 17
	maxMistakes = 100 // in an answer
)

// JSON reads the body of an API request into v, a pointer to a struct, by the
// rules of the config file. It returns all mistakes at once, as [mistake.Errors], with the path
// of each value in place of a line.
//
// The body is a merge patch (RFC 7386) of v: its keys change values, and null removes
// them.
func JSON(body []byte, v any) error {
	d := &decoder{json: true, lines: map[string]int{}, budget: maxNodes}
	d.jsonDocument(body, v)
	return d.errs.Err()
}

// Object is [JSON] for a document whose place in errors is file. It returns the paths of
// the values that it has set, too.
func Object(file string, body []byte, v any) (paths []string, errs mistake.Errors) {
	d := &decoder{file: file, json: true, lines: map[string]int{}, budget: maxNodes}
	d.jsonDocument(body, v)
	return slices.Sorted(maps.Keys(d.lines)), d.errs
}

func (d *decoder) jsonDocument(body []byte, v any) {
	fail := func(e *mistake.Error) {
		e.File = d.file
		d.errs = append(d.errs, e)
	}
	var valid json.RawMessage // encoding/json bounds how deep values nest
	if err := json.Unmarshal(body, &valid); err != nil || !utf8.Valid(body) {
		fail(notJSON(err))
		return
	}
	if bytes.Count(body, []byte{','}) > maxCommas {
		fail(&mistake.Error{Msg: fmt.Sprintf("the body has more than %d values", maxCommas), Hint: "send it in parts"})
		return
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	root := jsonNode(dec)
	if root.Kind != yaml.MappingNode {
		d.failf(root, "", `write {"key": "value"}`, "the body is not an object, but a %s", kindName(root))
	} else {
		d.decode(root, reflect.ValueOf(v).Elem(), "")
	}
	if d.more > 0 {
		fail(&mistake.Error{Msg: fmt.Sprintf("%d more mistakes", d.more), Hint: "mend the others first"})
	}
}

// notJSON returns the error for a body that is not JSON; a nil err means that it is not
// UTF-8.
func notJSON(err error) *mistake.Error {
	e := &mistake.Error{Msg: "the body is not UTF-8", Hint: "JSON is always UTF-8 (RFC 8259)"}
	if err != nil {
		e.Msg, e.Hint = "the body is not JSON: "+err.Error(), "mind the quotes and the commas"
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		e.Msg += " at byte " + strconv.FormatInt(syntax.Offset, 10)
	}
	return e
}

// jsonNode reads the next value of valid JSON, or the next key of an object, as a YAML
// node. JSON has no aliases and no tags.
func jsonNode(dec *json.Decoder) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	t, _ := dec.Token()
	switch t := t.(type) {
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for dec.More() {
			n.Content = append(n.Content, jsonNode(dec))
		}
		_, _ = dec.Token() // its end
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(t)
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n
}
