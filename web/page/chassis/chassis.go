// Package chassis draws chassis as slots, with the machines that are in them.
//
// The package does not know how a page looks.
package chassis

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drover/internal/printable"
	"drover/pools"
	"drover/web/page/snapshot"
	"drover/web/page/table"
	"drover/web/page/text"
)

// Chassis is a chassis with its cartridges.
type Chassis struct {
	Name, Address, Pool string
	Facts               []string
	Error               string
	Problems            []string
	Cartridges          []Cartridge
	Read                string // URL of the form that reads it now; empty: the client may not
}

// Cartridge is a cartridge with its nodes.
type Cartridge struct {
	Number int
	Nodes  []Slot
}

// Slot is a slot, with the machine in it if it has a name.
type Slot struct {
	Slot, Name, URL string
	State           string
}

// The limits of what a chassis says.
const (
	maxProblems = 20
	maxText     = 300 // bytes
)

// Draw returns chassis with the machines that are in them. read returns the URL of the form that
// reads a chassis; empty: there is none.
func Draw(all []pools.ChassisStatus, machines []snapshot.Machine, now time.Time, read func(*pools.ChassisStatus) string) (drawn []Chassis) {
	in := map[string]map[pools.Slot]*snapshot.Machine{}
	for i := range machines {
		m := &machines[i]
		slot, ok := pools.ParseSlot(m.ChassisSlot.Slot)
		if !ok || !slot.Valid() {
			continue
		}
		if in[m.ChassisSlot.Chassis] == nil {
			in[m.ChassisSlot.Chassis] = map[pools.Slot]*snapshot.Machine{}
		}
		in[m.ChassisSlot.Chassis][slot] = m
	}
	for _, status := range all {
		c := Chassis{
			Name: status.Name, Address: printable.Line(status.Address, 80), Pool: status.Pool, Error: printable.Line(status.Error, maxText),
			Facts: facts(&status, now), Read: read(&status), Cartridges: cartridges(in[status.Name]),
		}
		for _, text := range status.Problems[:min(len(status.Problems), maxProblems)] {
			c.Problems = append(c.Problems, printable.Line(text, maxText))
		}
		drawn = append(drawn, c)
	}
	return drawn
}

// facts returns what is known of a chassis itself.
func facts(c *pools.ChassisStatus, now time.Time) (facts []string) {
	switch {
	case c.Asking:
		facts = append(facts, "is being read")
	case c.Last.IsZero():
		facts = append(facts, "not read yet")
	default:
		facts = append(facts, "read "+text.Ago(now.Sub(c.Last))+" ago")
	}
	facts = append(facts, fmt.Sprintf("%d nodes", c.Nodes))
	for _, word := range slices.Sorted(maps.Keys(c.Counts)) {
		if n := c.Counts[word]; n > 0 && word != "same" {
			facts = append(facts, fmt.Sprintf("%d %s", n, printable.Line(word, 32)))
		}
	}
	if c.Stopped {
		facts = append(facts, "no automatic reading until somebody asks for one")
	}
	return facts
}

// cartridges returns all cartridges of a chassis, with the nodes that are in them. A
// cartridge has one slot at least, and as many as its highest node.
func cartridges(in map[pools.Slot]*snapshot.Machine) (all []Cartridge) {
	for number := 1; number <= pools.Cartridges; number++ {
		c := Cartridge{Number: number}
		highest := 1
		for node := 1; node <= pools.NodesEach; node++ {
			if in[pools.Slot{Cartridge: number, Node: node}] != nil {
				highest = node
			}
		}
		for node := 1; node <= highest; node++ {
			slot := pools.Slot{Cartridge: number, Node: node}
			s := Slot{Slot: slot.String()}
			if m := in[slot]; m != nil {
				s.Name, s.URL, s.State = m.Name, table.NodePath(m.Name), m.State
			}
			c.Nodes = append(c.Nodes, s)
		}
		all = append(all, c)
	}
	return all
}
