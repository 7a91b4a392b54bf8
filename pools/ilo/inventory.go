package ilo

import (
	"errors"
	"fmt"
	"slices"

	"drover/pools"
)

// Inventory is what a chassis said it holds.
type Inventory struct {
	Nodes    []Node `json:"nodes"`              // by slot
	Empty    []Slot `json:"empty,omitempty"`    // slots without a cartridge
	Problems []Note `json:"problems,omitempty"` // rows that were refused: they are in no Node
	Warnings []Note `json:"warnings,omitempty"`
}

// Node is a machine in a slot.
type Node struct {
	Slot
	NICs     []NIC  `json:"nics"` // by number; those without a MAC are left out
	Power    State  `json:"power"`
	Health   string `json:"health,omitempty"`
	Maker    string `json:"maker,omitempty"`
	Arch     string `json:"arch,omitempty"` // in the chassis' words: "x86 Architecture"
	Memory   string `json:"memory,omitempty"`
	Product  string `json:"product,omitempty"` // "ProLiant m710x Server Cartridge"
	Serial   string `json:"serial,omitempty"`
	AssetTag string `json:"assetTag,omitempty"`
}

// MACs are those of its network cards, in the order of their numbers.
func (n Node) MACs() []pools.MAC {
	macs := make([]pools.MAC, len(n.NICs))
	for i, nic := range n.NICs {
		macs[i] = nic.MAC
	}
	return macs
}

// NIC is a network card of a node.
type NIC struct {
	Number int       `json:"number"`           // 1 is the first column of the table
	Switch string    `json:"switch,omitempty"` // A or B: the switch module that it is wired to
	MAC    pools.MAC `json:"mac"`
}

// Note says what is odd about a line of what a chassis said.
type Note struct {
	Line int    `json:"line,omitempty"` // 0: not from a text
	Slot Slot   `json:"slot,omitzero"`  // none: the line is about no slot
	Text string `json:"text"`
}

func (n Note) String() string {
	text := n.Text
	if n.Slot != (Slot{}) {
		text = fmt.Sprintf("%s: %s", n.Slot, text)
	}
	if n.Line > 0 {
		text = fmt.Sprintf("line %d: %s", n.Line, text)
	}
	return text
}

// What can be wrong with a whole chassis. Test with errors.Is.
var (
	ErrRefused     = errors.New("login refused")
	ErrUnreachable = errors.New("unreachable")
	ErrHostKey     = errors.New("host key or certificate is not the one that is known")
	ErrUnreadable  = errors.New("not understood")
)

// State is a power state.
type State string

// The power states. A state that has no name here is unknown: whoever waits for
// off must not take it for off.
const (
	On          State = "on"
	Off         State = "off"
	PoweringOn  State = "powering-on"
	PoweringOff State = "powering-off"
	Unavailable State = "unavailable" // the chassis cannot tell; seen while a cartridge starts
	Unknown     State = "unknown"
)

// parseState reads the word of a chassis, or of Redfish. ok tells whether it is
// one at all.
func parseState(word string) (s State, ok bool) {
	switch lower(word) {
	case "on":
		return On, true
	case "off":
		return Off, true
	case "poweringon":
		return PoweringOn, true
	case "poweringoff":
		return PoweringOff, true
	case "unavailable":
		return Unavailable, true
	}
	return Unknown, false
}

// Node returns the node of a slot.
func (inv *Inventory) Node(s Slot) (Node, bool) {
	i, ok := slices.BinarySearchFunc(inv.Nodes, s, func(n Node, s Slot) int { return n.Compare(s) })
	if !ok {
		return Node{}, false
	}
	return inv.Nodes[i], true
}

// Choose drops what is not selected.
func (inv *Inventory) Choose(sel Selection) {
	inv.Nodes = slices.DeleteFunc(inv.Nodes, func(n Node) bool { return !sel.Has(n.Slot) })
	inv.Empty = slices.DeleteFunc(inv.Empty, func(s Slot) bool { return !sel.Has(s) })
	other := func(n Note) bool { return n.Slot != (Slot{}) && !sel.Has(n.Slot) }
	inv.Problems = slices.DeleteFunc(inv.Problems, other)
	inv.Warnings = slices.DeleteFunc(inv.Warnings, other)
}
