package pools

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// The size of a chassis: its cartridges, and the nodes of a cartridge. The command
// line of a Moonshot 1500 accepts c1-45 and n1-8. No cartridge on the market has more
// than four nodes.
const (
	Cartridges = 45
	NodesEach  = 8
)

// Slot is a position in a chassis. It is comparable.
type Slot struct {
	Cartridge int `json:"cartridge"` // 1 to 45
	Node      int `json:"node"`      // 1 to 8
}

// ParseSlot reads text of the form c12n1, in either case. It reports whether s has that
// form; the slot may still be out of bounds, see [Slot.Valid].
func ParseSlot(s string) (slot Slot, ok bool) {
	cart, node, n := strings.Cut(strings.ToLower(s), "n")
	cart, c := strings.CutPrefix(cart, "c")
	x, okX := digits(cart)
	y, okY := digits(node)
	return Slot{x, y}, n && c && okX && okY
}

// digits reads one or two digits.
func digits(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 8)
	return int(n), err == nil && len(s) <= 2
}

// Slots returns all slots of a chassis, in order.
func Slots() []Slot {
	all := make([]Slot, 0, Cartridges*NodesEach)
	for c := 1; c <= Cartridges; c++ {
		for n := 1; n <= NodesEach; n++ {
			all = append(all, Slot{c, n})
		}
	}
	return all
}

// Valid reports whether a chassis has the slot.
func (s Slot) Valid() bool {
	return s.Cartridge >= 1 && s.Cartridge <= Cartridges && s.Node >= 1 && s.Node <= NodesEach
}

// String returns the form of the command line, c12n1.
func (s Slot) String() string { return fmt.Sprintf("c%dn%d", s.Cartridge, s.Node) }

// Compare compares slots by cartridge, then by node.
func (s Slot) Compare(t Slot) int {
	return cmp.Or(cmp.Compare(s.Cartridge, t.Cartridge), cmp.Compare(s.Node, t.Node))
}

// Selection is a choice of slots. The zero Selection is all of them.
type Selection struct {
	set   map[Slot]bool
	wide  bool   // whole cartridges are chosen, however many nodes they have
	exact []Slot // in the order in which they were named
}

// ParseSelection reads a list such as c1n1,c3,5-9: slots, whole cartridges and
// ranges of cartridges. "all" and the empty string are everything.
func ParseSelection(s string) (Selection, error) {
	if s = strings.ToLower(strings.TrimSpace(s)); s == "" || s == "all" {
		return Selection{}, nil
	}
	sel := Selection{set: map[Slot]bool{}}
	for word := range strings.SplitSeq(s, ",") {
		if err := sel.add(strings.TrimSpace(word)); err != nil {
			return Selection{}, err
		}
	}
	return sel, nil
}

func (s *Selection) add(word string) error {
	if slot, ok := ParseSlot(word); ok && slot.Valid() {
		if !s.set[slot] {
			s.exact = append(s.exact, slot)
		}
		s.set[slot] = true
		return nil
	}
	s.wide = true
	from, to, isRange := strings.Cut(word, "-")
	if !isRange {
		to = from
	}
	first, okFirst := digits(strings.TrimPrefix(from, "c"))
	last, okLast := digits(strings.TrimPrefix(to, "c"))
	if !okFirst || !okLast || first < 1 || last > Cartridges || first > last {
		return Hint(fmt.Sprintf("write c1n1, c3 or 5-9, with cartridges from 1 to %d", Cartridges), "%q chooses no nodes", word)
	}
	for _, slot := range Slots() {
		if slot.Cartridge >= first && slot.Cartridge <= last {
			s.set[slot] = true
		}
	}
	return nil
}

// Exact returns the slots of a selection that lists single slots only; false for other
// selections, which depend on the slots of the chassis.
func (s Selection) Exact() ([]Slot, bool) { return s.exact, s.set != nil && !s.wide }

// Has reports whether a slot is chosen.
func (s Selection) Has(slot Slot) bool { return s.set == nil || s.set[slot] }

// Cartridges returns the first and the last cartridge with a chosen slot.
func (s Selection) Cartridges() (first, last int) {
	for _, slot := range Slots() {
		if s.Has(slot) {
			first, last = cmp.Or(first, slot.Cartridge), slot.Cartridge
		}
	}
	return first, last
}
