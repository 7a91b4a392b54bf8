package resolve

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"drover/pools"
	"drover/pools/option"
)

// optionSet holds DHCP options and parts of options, by ID.
type optionSet map[option.ID]option.Value

// with returns the set with later settings merged into it. A whole option replaces its
// parts, and a part replaces the whole option.
func (s optionSet) with(settings map[string]pools.Strings) optionSet {
	out := maps.Clone(s)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		o, _, _ := option.Parse(key, settings[key]) // package config has checked it
		maps.DeleteFunc(out, func(at option.ID, _ option.Value) bool {
			return at.Code == o.Code && at.Class == o.Class && at.Part != o.Part
		})
		out[o.ID] = o
	}
	return out
}

// options returns the options of DHCPv4 in the order of their codes, each assembled from its
// parts.
func (s optionSet) options() []Option {
	var out []Option
	for _, at := range slices.SortedFunc(maps.Keys(s), compareID) {
		part := s[at]
		if at.Code6 != 0 {
			continue
		}
		if !at.Part {
			out = append(out, Option{Code: at.Code, Name: part.Name, Text: part.Text, Data: part.Data, Class: at.Class, Forced: part.Forced})
			continue
		}
		if n := len(out) - 1; n < 0 || out[n].Code != at.Code || out[n].Class != at.Class {
			out = append(out, Option{Code: at.Code, Name: part.Name, Class: at.Class})
		}
		out[len(out)-1].add(&part)
	}
	return out
}

// options6 returns the options of DHCPv6 in the order of their codes.
func (s optionSet) options6() []Option6 {
	var out []Option6
	for _, at := range slices.SortedFunc(maps.Keys(s), compareID) {
		if o := s[at]; at.Code6 != 0 {
			out = append(out, Option6{Code: at.Code6, Name: o.Name, Text: o.Text, Data: o.Data, Forced: o.Forced})
		}
	}
	return out
}

// For reports whether a client with this vendor class (60) may get the option (RFC 2132, section
// 8.4).
func (o *Option) For(class string) bool { return o.Class == "" || newPattern(o.Class).matches(class) }

func compareID(a, b option.ID) int {
	return cmp.Or(cmp.Compare(a.Code6, b.Code6), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Enterprise, b.Enterprise), cmp.Compare(a.Sub, b.Sub))
}

// add appends a part. Parts must come in the order of [compareID].
func (o *Option) add(p *option.Value) {
	o.Forced = o.Forced || p.Forced
	var label string
	switch o.Code {
	case 124:
		label = fmt.Sprint(p.Enterprise)
		o.Data = append(binary.BigEndian.AppendUint32(o.Data, p.Enterprise), byte(len(p.Data)))
		o.Data = append(o.Data, p.Data...)
	case 125:
		label = fmt.Sprintf("%d.%d", p.Enterprise, p.Sub)
		o.addEnterprise(p)
	default:
		label = fmt.Sprint(p.Sub)
		o.Data = append(append(o.Data, p.Sub, byte(len(p.Data))), p.Data...)
	}
	if o.Text != "" {
		o.Text += " "
	}
	o.Text += label + "=" + p.Text
}

// addEnterprise appends a sub-option of option 125: parts of one enterprise
// share a header, whose last byte is their length.
func (o *Option) addEnterprise(p *option.Value) {
	last, found := 0, false
	for i := 0; i+5 <= len(o.Data); i += 5 + int(o.Data[i+4]) {
		last, found = i, binary.BigEndian.Uint32(o.Data[i:]) == p.Enterprise && int(o.Data[i+4])+2+len(p.Data) <= 255
	}
	if !found {
		last = len(o.Data)
		o.Data = append(binary.BigEndian.AppendUint32(o.Data, p.Enterprise), 0)
	}
	o.Data = append(append(o.Data, p.Sub, byte(len(p.Data))), p.Data...)
	o.Data[last+4] = byte(len(o.Data) - last - 5)
}
