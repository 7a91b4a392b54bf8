package pools

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// optionAt is where an option or a part of one stands. Parts are sub-options of
// options that encapsulate others: 43 and 175 (RFC 2132, section 8.4), 125 by
// enterprise number and 124 by enterprise number alone (RFC 3925).
type optionAt struct {
	code       uint8
	part       bool
	enterprise uint32
	sub        uint8
}

// optionPart is one entry of dhcpOptions, encoded.
type optionPart struct {
	optionAt
	name, text string
	data       []byte
}

// partOf reads what stands behind the first dot of a key.
func partOf(code uint8, part string) (optionAt, error) {
	at := optionAt{code: code, part: part != ""}
	if part == "" {
		return at, nil
	}
	enterprise, sub, hasSub := strings.Cut(part, ".")
	switch code {
	case 124, 125:
		n, err := strconv.ParseUint(enterprise, 10, 32)
		if err != nil {
			return at, fmt.Errorf("%q is not an enterprise number", enterprise)
		}
		at.enterprise = uint32(n)
		if hasSub == (code == 124) {
			return at, errors.New("124 has a text for an enterprise, 125 has sub-options of an enterprise")
		}
		if code == 124 {
			return at, nil
		}
	case 43, 175:
		sub = part
	default:
		return at, errors.New("it has no sub-options")
	}
	n, err := strconv.ParseUint(sub, 10, 8)
	if err != nil || code != 125 && (n == 0 || n == 255) {
		return at, fmt.Errorf("%q is not the number of a sub-option", sub)
	}
	at.sub = uint8(n)
	return at, nil
}

// optionSet is the options that tags come to, part by part.
type optionSet map[optionAt]optionPart

// with is the set with later settings laid over it. What sets a whole option
// takes the place of its parts, and the other way round.
func (s optionSet) with(settings map[string]Strings, table *optionTable) optionSet {
	out := maps.Clone(s)
	for _, key := range keys(settings) {
		o, _, _ := table.parse(key, settings[key]) // the check has passed
		maps.DeleteFunc(out, func(at optionAt, _ optionPart) bool { return at.code == o.code && at.part != o.part })
		out[o.optionAt] = o
	}
	return out
}

// options puts the parts together, in the order of the codes.
func (s optionSet) options() []Option {
	var out []Option
	for _, at := range slices.SortedFunc(maps.Keys(s), compareOptionAt) {
		part := s[at]
		if !at.part {
			out = append(out, Option{Code: at.code, Name: part.name, Text: part.text, Data: part.data})
			continue
		}
		if len(out) == 0 || out[len(out)-1].Code != at.code {
			out = append(out, Option{Code: at.code, Name: part.name})
		}
		out[len(out)-1].add(&part)
	}
	return out
}

func compareOptionAt(a, b optionAt) int {
	number := func(at optionAt) uint64 { return uint64(at.code)<<40 | uint64(at.enterprise)<<8 | uint64(at.sub) }
	switch x, y := number(a), number(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// add appends a part, which comes after those that are there.
func (o *Option) add(p *optionPart) {
	var label string
	switch o.Code {
	case 124:
		label = fmt.Sprint(p.enterprise)
		o.Data = append(binary.BigEndian.AppendUint32(o.Data, p.enterprise), byte(len(p.data)))
		o.Data = append(o.Data, p.data...)
	case 125:
		label = fmt.Sprintf("%d.%d", p.enterprise, p.sub)
		o.addEnterprise(p)
	default:
		label = fmt.Sprint(p.sub)
		o.Data = append(append(o.Data, p.sub, byte(len(p.data))), p.data...)
	}
	if o.Text != "" {
		o.Text += " "
	}
	o.Text += label + "=" + p.text
}

// addEnterprise appends a sub-option of option 125: parts of one enterprise
// share a header, whose last byte is their length.
func (o *Option) addEnterprise(p *optionPart) {
	last, found := 0, false
	for i := 0; i+5 <= len(o.Data); i += 5 + int(o.Data[i+4]) {
		last, found = i, binary.BigEndian.Uint32(o.Data[i:]) == p.enterprise && int(o.Data[i+4])+2+len(p.data) <= 255
	}
	if !found {
		last = len(o.Data)
		o.Data = append(binary.BigEndian.AppendUint32(o.Data, p.enterprise), 0)
	}
	o.Data = append(append(o.Data, p.sub, byte(len(p.data))), p.data...)
	o.Data[last+4] = byte(len(o.Data) - last - 5)
}
