package moonshot

import (
	"strconv"
	"strings"

	"drover/hardware/bmc"
	"drover/pools"
)

// blocks reads the outputs that are not tables: a heading for a cartridge, a node or a
// blade, then lines "Key: Value". The headings of firmware 1.x are "Cartridge #1" and
// "Node #1", or "c1: #Cartridge c1n1". Firmware 2.0 has "show blades b1", where the
// command is the only heading.
func (p *parser) blocks(lines []line) {
	var at pools.Slot // Node 0: all nodes of the cartridge
	blade := false
	for _, l := range lines {
		if l.prompt {
			at, blade = bladeOf(l.command)
			if blade {
				p.macs = true
			}
			continue
		}
		if cart, node, ok := heading(l.String()); ok {
			if cart > 0 {
				at = pools.Slot{Cartridge: cart}
			}
			at.Node = node
			continue
		}
		key, value, ok := strings.Cut(l.String(), ":")
		if !ok || at.Cartridge == 0 {
			continue
		}
		if blade {
			p.bladeFact(l.no, at, lower(key), strings.TrimSpace(value))
		}
		for slot, f := range p.nodes {
			if slot.Cartridge == at.Cartridge && (at.Node == 0 || at.Node == slot.Node) {
				f.fact(lower(key), strings.TrimSpace(value))
			}
		}
	}
}

// fact reads one "Key: Value" of a node.
func (f *found) fact(key, value string) {
	key = strings.ReplaceAll(key, " ", "")
	switch {
	case key == "powerstate":
		f.node.Power, _ = bmc.ParseState(value)
	case bmc.NoValue(value):
	case key == "productname", key == "model":
		f.node.Product = value
	case key == "serialnumber":
		f.node.Serial = value
	}
}

// bladeOf returns the slot of "show blades b3".
func bladeOf(command string) (pools.Slot, bool) {
	words := strings.Fields(strings.ToLower(command))
	if len(words) != 3 || words[0] != "show" || !strings.HasPrefix(words[1], "blade") || !strings.HasPrefix(words[2], "b") {
		return pools.Slot{}, false
	}
	s, ok := pools.ParseSlot("c" + words[2][1:] + "n1")
	return s, ok && s.Valid()
}

// bladeFact reads one "Key: Value" of a blade, which becomes a node. The MACs have keys
// such as "NIC 1 MAC (Switch A)". "iLO MAC" is not a card of the node.
func (p *parser) bladeFact(no int, at pools.Slot, key, value string) {
	f := p.at(at)
	if f.listed == 0 {
		f.listed = no
	}
	c := column{name: key}
	n := c.nic()
	if n == 0 || !strings.Contains(key, "mac") || strings.HasPrefix(key, "ilo") {
		return
	}
	if f.macs == 0 {
		f.macs = no
	}
	if bmc.NoValue(value) {
		return
	}
	mac, err := pools.ParseMAC(value)
	if err != nil {
		p.problem(no, at, "NIC %d: %v", n, err)
		return
	}
	for _, nic := range f.node.NICs {
		if nic.MAC == mac && nic.Number == n {
			return
		}
	}
	f.node.NICs = append(f.node.NICs, NIC{Number: n, Switch: c.switchName(), MAC: mac})
}

// heading reads the first line of a block. cart is 0 for a node of the preceding
// cartridge, and node is 0 for a whole cartridge.
func heading(s string) (cart, node int, ok bool) {
	s = strings.TrimSuffix(lower(s), ":")
	if n, ok := strings.CutPrefix(s, "cartridge #"); ok {
		cart, err := strconv.Atoi(n)
		return cart, 0, err == nil
	}
	if n, ok := strings.CutPrefix(s, "node #"); ok {
		node, err := strconv.Atoi(n)
		return 0, node, err == nil
	}
	words := strings.Fields(s)
	if len(words) == 0 || len(words) > 3 {
		return 0, 0, false
	}
	slot, ok := pools.ParseSlot(words[len(words)-1])
	return slot.Cartridge, slot.Node, ok && slot.Valid()
}
