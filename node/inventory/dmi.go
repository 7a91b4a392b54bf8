package inventory

import (
	"bytes"
	"cmp"
	"slices"

	"drover/pools"
)

// maxDMI bounds the table of DMI; those of servers have some 10 kB.
const maxDMI = 1 << 20

// Types of the structures that say where a machine is (SMBIOS, DSP0134, section 7), and of
// HPE's own "ProLiant System/Rack Locator", as dmidecode reads it.
const (
	baseboard   = 2
	rackLocator = 204
)

// structure is a structure of DMI. Byte n of fields is at offset n of the specification.
type structure struct {
	fields  []byte
	strings [][]byte
}

// text returns the string that the byte at an offset names by its number, from 1; "" if there
// is none.
func (s structure) text(offset int) string {
	if offset >= len(s.fields) || s.fields[offset] == 0 || int(s.fields[offset]) > len(s.strings) {
		return ""
	}
	return string(bytes.TrimSpace(s.strings[s.fields[offset]-1]))
}

// locate finds slot and chassis in the table of DMI. A blade has its location in the structure
// of its board, as the cartridges of a Moonshot have; those of a c7000 have HPE's structure.
// One that is damaged ends the table.
func locate(v *pools.Inventory, table []byte) {
	for {
		s, rest, ok := cutStructure(table)
		if !ok {
			return
		}
		table = rest
		switch s.fields[0] {
		case baseboard:
			v.Slot = cmp.Or(v.Slot, s.text(0x0a))
		case rackLocator:
			if slices.Contains([]string{"HP", "HPE", "Hewlett-Packard"}, v.Vendor) {
				v.Slot, v.Chassis = cmp.Or(s.text(0x07), v.Slot), cmp.Or(s.text(0x0a), v.Chassis)
			}
		}
	}
}

// cutStructure cuts the first structure off: type, length of the fields, handle, fields, and
// strings, which end with an empty one.
func cutStructure(table []byte) (s structure, rest []byte, ok bool) {
	if len(table) < 4 || table[1] < 4 || int(table[1]) > len(table) {
		return s, nil, false
	}
	s.fields = table[:table[1]]
	rest = table[table[1]:]
	end := bytes.Index(rest, []byte{0, 0})
	if end < 0 {
		return s, nil, false
	}
	if end > 0 {
		s.strings = bytes.Split(rest[:end], []byte{0})
	}
	return s, rest[end+2:], true
}
