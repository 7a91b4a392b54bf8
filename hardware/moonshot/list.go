package moonshot

import (
	"strings"

	"drover/hardware/bmc"
)

// listRow reads a row of "show node list". Firmware differs in the names of its
// columns (Health or Status) and in whether there is an asset tag.
func (p *parser) listRow(t table, r row) {
	f := p.at(r.slot)
	f.listed = r.line
	if f.empty = r.empty(t); f.empty {
		return
	}
	n := &f.node // when there are two lists, the later one counts
	n.Power = r.power(t)
	if r.overflows(t) {
		return // the columns would cut through cells
	}
	for _, c := range t.columns[t.id+1:] {
		text := r.cell(c)
		if bmc.NoValue(text) {
			continue
		}
		switch name := lower(c.name); {
		case strings.Contains(name, "tag"):
			n.AssetTag = text
		case strings.Contains(name, "manufacturer"):
			n.Maker = text
		case strings.Contains(name, "architecture"):
			n.Arch = text
		case strings.Contains(name, "memory"):
			n.Memory = text
		case strings.Contains(name, "health"), strings.Contains(name, "status"):
			n.Health = text
		}
	}
}

// empty reports whether the row is of a slot without a cartridge. The text of an
// asset tag does not count.
func (r row) empty(t table) bool {
	for _, c := range t.columns[t.id+1:] {
		if strings.Contains(lower(c.name), "tag") {
			break
		}
		if s := lower(r.cell(c)); s == "not present" || s == "empty" {
			return true
		}
	}
	return strings.Contains(lower(r.withoutTag(t)), "no asset information")
}

// withoutTag returns the row up to its asset tag.
func (r row) withoutTag(t table) string {
	for _, c := range t.columns {
		if strings.Contains(lower(c.name), "tag") {
			return cut(r.text, 0, c.from)
		}
	}
	return string(r.text)
}

// power reads the power column. If an earlier cell is too long and has shifted the
// column, the first word of the row that is a power state counts: only the asset tag
// behind it could contain another.
func (r row) power(t table) bmc.State {
	for _, c := range t.columns {
		if name := lower(c.name); !strings.Contains(name, "power") && !strings.Contains(name, "pwr") {
			continue
		}
		s, ok := bmc.ParseState(r.cell(c))
		if ok || !r.overflows(t) {
			return s
		}
		for word := range strings.FieldsSeq(r.behindID(t)) {
			if s, ok := bmc.ParseState(word); ok {
				return s
			}
		}
	}
	return bmc.Unknown
}
