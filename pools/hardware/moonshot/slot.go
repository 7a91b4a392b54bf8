package moonshot

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"drover/pools"
)

// Slot is a position in a chassis. It is comparable.
type Slot struct {
	Cartridge int `json:"cartridge"` // 1 to 45
	Node      int `json:"node"`      // 1 to 8
}

// ParseSlot reads c12n1, in either case.
func ParseSlot(s string) (Slot, error) {
	slot, ok := slotForm(s)
	switch {
	case !ok:
		return Slot{}, fmt.Errorf("%q is no slot: write c12n1", s)
	case !slot.Valid():
		return Slot{}, fmt.Errorf("no chassis has a slot %s: it is c1 to c%d, n1 to n%d", slot, pools.Cartridges, pools.NodesEach)
	}
	return slot, nil
}

// slotForm reads text of the form c12n1. The slot may be out of bounds. The bool reports
// whether s has that form.
func slotForm(s string) (Slot, bool) {
	cart, node, ok := strings.Cut(strings.ToLower(s), "n")
	cart, c := strings.CutPrefix(cart, "c")
	if !ok || !c {
		return Slot{}, false
	}
	x, okX := digits(cart)
	y, okY := digits(node)
	return Slot{x, y}, okX && okY
}

// digits reads one or two digits.
func digits(s string) (int, bool) {
	if s == "" || len(s) > 2 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// Valid reports whether a chassis has the slot.
func (s Slot) Valid() bool {
	return s.Cartridge >= 1 && s.Cartridge <= pools.Cartridges && s.Node >= 1 && s.Node <= pools.NodesEach
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
	if strings.Contains(word, "n") {
		slot, err := ParseSlot(word)
		if err != nil {
			return err
		}
		if !s.set[slot] {
			s.exact = append(s.exact, slot)
		}
		s.set[slot] = true
		return nil
	}
	s.wide = true
	from, to, isRange := strings.Cut(word, "-")
	first, ok := digits(strings.TrimPrefix(from, "c"))
	last, okLast := first, ok
	if isRange {
		last, okLast = digits(strings.TrimPrefix(to, "c"))
	}
	if !ok || !okLast || first < 1 || last > pools.Cartridges || first > last {
		return fmt.Errorf("%q chooses no slots: write c1n1, c3 or 5-9, with cartridges from 1 to %d", word, pools.Cartridges)
	}
	for c := first; c <= last; c++ {
		for n := 1; n <= pools.NodesEach; n++ {
			s.set[Slot{c, n}] = true
		}
	}
	return nil
}

// Exact returns the slots of a selection that lists single slots only; false for other
// selections, which depend on the slots of the chassis.
func (s Selection) Exact() ([]Slot, bool) { return s.exact, s.set != nil && !s.wide }

// Has reports whether a slot is chosen.
func (s Selection) Has(slot Slot) bool { return s.set == nil || s.set[slot] }
