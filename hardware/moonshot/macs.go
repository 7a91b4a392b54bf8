package moonshot

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"drover/hardware/bmc"
	"drover/internal/printable"
	"drover/pools"
)

// macWidth is the width of a column of MACs.
const macWidth = len("a0:1d:48:b5:04:34")

// nic returns the number in the name of a column such as "NIC 2 (Switch B)"; 0 for other
// columns.
func (c column) nic() int {
	_, after, ok := strings.Cut(lower(c.name), "nic")
	if !ok {
		return 0
	}
	after = strings.TrimLeft(after, " #")
	end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(after)
	}
	n, _ := strconv.Atoi(after[:end])
	return n
}

// switchName returns the letter of the switch in the name of a column, "" for none.
func (c column) switchName() string {
	_, after, ok := strings.Cut(lower(c.name), "switch ")
	if !ok || after == "" || after[0] < 'a' || after[0] > 'z' {
		return ""
	}
	return strings.ToUpper(after[:1])
}

// nics returns the columns of MACs by the number of the card. A table without the word
// NIC in its header has MACs if a column contains one. Its cards are then the columns
// that contain a MAC or are as wide as one, numbered in order.
func (t table) nics() map[int]column {
	cards, like := map[int]column{}, map[int]column{}
	some := false
	for i, c := range t.columns {
		if n := c.nic(); n > 0 {
			cards[n] = c
		}
		if i <= t.id || !c.maybeCard() {
			continue
		}
		has := slices.ContainsFunc(t.rows, func(r row) bool {
			_, err := pools.ParseMAC(r.cell(c))
			return err == nil
		})
		if some = some || has; has || c.width == macWidth {
			like[len(like)+1] = c
		}
	}
	switch {
	case len(cards) > 0:
		return cards
	case some:
		return like
	}
	return nil
}

// maybeCard reports whether a column without the word NIC may be that of a card. A MAC in
// other columns belongs to a management processor or to a tag.
func (c column) maybeCard() bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower(c.name), w) })
	}
	return !has("ilo", "bmc", "management", "mgmt", "tag") && (c.width >= macWidth || has("mac", "port", "eth"))
}

// macRow reads a row of "show node macaddr". The cell is N/A for an absent card, and for
// a card whose address is unknown until the node is first switched on. The other cards
// keep their numbers.
func (p *parser) macRow(t table, r row, cards map[int]column) {
	f := p.at(r.slot)
	var nics []NIC
	for _, n := range slices.Sorted(maps.Keys(cards)) {
		cell, ok := r.card(t, cards, n)
		if !ok {
			p.problem(r.line, r.slot, "the cells do not stand in the columns of the ruler: %q", printable.Line(string(r.text), maxShown))
			return
		}
		if bmc.NoValue(cell) {
			continue
		}
		if bmc.UnsetMAC(cell) {
			p.warn(r.line, r.slot, "NIC %d: %s is no address: the card is taken as absent", n, cell)
			continue
		}
		mac, err := pools.ParseMAC(cell)
		if err != nil {
			p.problem(r.line, r.slot, "NIC %d: %v", n, err)
			return
		}
		if i := slices.IndexFunc(nics, func(o NIC) bool { return o.MAC == mac }); i >= 0 {
			p.problem(r.line, r.slot, "NIC %d and NIC %d have one MAC, %s", nics[i].Number, n, mac)
			return
		}
		if mac[0]&2 != 0 {
			p.warn(r.line, r.slot, "NIC %d: %s is locally administered: no factory gave it", n, mac)
		}
		nics = append(nics, NIC{Number: n, Switch: cards[n].switchName(), MAC: mac})
	}
	if f.macs != 0 && !slices.Equal(f.node.NICs, nics) {
		p.problem(r.line, r.slot, "line %d has other MACs for it (is that the output of two chassis?)", f.macs)
		return
	}
	f.macs, f.node.NICs = r.line, nics
}

// card returns the cell of card n. If cells are shifted out of their columns, it counts
// words instead. ok is false when the row then has other words than the cards.
func (r row) card(t table, cards map[int]column, n int) (cell string, ok bool) {
	if !r.overflows(t) {
		return r.cell(cards[n]), true
	}
	first := t.id + 1
	words := strings.Fields(r.behindID(t))
	i := slices.Index(t.columns, cards[n]) - first
	if len(words) != len(cards) || len(t.columns)-first != len(cards) || i < 0 {
		return "", false
	}
	return words[i], true
}
