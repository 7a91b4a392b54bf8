package moonshot

import (
	"fmt"
	"slices"

	"drover/hardware/bmc"
	"drover/pools"
)

// Inventory is the content of a chassis.
type Inventory struct {
	Nodes    []Node       `json:"nodes"`              // by slot
	Empty    []pools.Slot `json:"empty,omitempty"`    // slots without a cartridge
	Problems []Note       `json:"problems,omitempty"` // rejected rows, which are in no Node
	Warnings []Note       `json:"warnings,omitempty"`
}

// Node is a machine in a slot.
type Node struct {
	pools.Slot
	NICs     []NIC     `json:"nics"` // by number; those without a MAC are left out
	Power    bmc.State `json:"power"`
	Health   string    `json:"health,omitempty"`
	Maker    string    `json:"maker,omitempty"`
	Arch     string    `json:"arch,omitempty"` // as the chassis writes it: "x86 Architecture"
	Memory   string    `json:"memory,omitempty"`
	Product  string    `json:"product,omitempty"` // "ProLiant m710x Server Cartridge"
	Serial   string    `json:"serial,omitempty"`
	AssetTag string    `json:"assetTag,omitempty"`
}

// NIC is a network card of a node.
type NIC struct {
	Number int       `json:"number"`           // 1 is the first column of the table
	Switch string    `json:"switch,omitempty"` // A or B: the switch module that it is wired to
	MAC    pools.MAC `json:"mac"`
}

// Note is a remark on a line of a chassis' output.
type Note struct {
	Line int        `json:"line,omitempty"` // 0: not from a text
	Slot pools.Slot `json:"slot,omitzero"`  // zero: the line is about no slot
	Text string     `json:"text"`
}

func (n Note) String() string {
	text := n.Text
	if n.Slot != (pools.Slot{}) {
		text = fmt.Sprintf("%s: %s", n.Slot, text)
	}
	if n.Line > 0 {
		text = fmt.Sprintf("line %d: %s", n.Line, text)
	}
	return text
}

// Choose removes all nodes, slots and notes that are not selected.
func (inv *Inventory) Choose(sel pools.Selection) {
	inv.Nodes = slices.DeleteFunc(inv.Nodes, func(n Node) bool { return !sel.Has(n.Slot) })
	inv.Empty = slices.DeleteFunc(inv.Empty, func(s pools.Slot) bool { return !sel.Has(s) })
	other := func(n Note) bool { return n.Slot != (pools.Slot{}) && !sel.Has(n.Slot) }
	inv.Problems = slices.DeleteFunc(inv.Problems, other)
	inv.Warnings = slices.DeleteFunc(inv.Warnings, other)
}

// Notes returns all problems and warnings as text.
func (inv *Inventory) Notes() (lines []string) {
	for _, n := range slices.Concat(inv.Problems, inv.Warnings) {
		lines = append(lines, n.String())
	}
	return lines
}
