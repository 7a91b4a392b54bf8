package ilo

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"text/template"

	"drover/pools"
)

// DefaultName is the name that a node gets when nobody says another.
const DefaultName = "{{.Chassis}}c{{.Cartridge}}n{{.Node}}"

// Naming says what becomes of the machines of one chassis: their names, their
// addresses, where they belong. Name, IP and Tags are text/templates over
// [Place].
type Naming struct {
	Chassis string
	Pool    string
	Name    string   // empty: DefaultName
	IP      string   // empty: as it is; a new node has none then
	Tags    []string // none: as they are
	NIC     string   // "all", a number such as 1, or a switch such as A; empty: all
}

// Place is what templates know of a node. It is what the node is known by and
// nothing else: a template with a serial number in it would make a new node of
// an exchanged cartridge.
type Place struct {
	Chassis         string
	Cartridge, Node int
	Slot            string // c12n1
}

// Namer is a checked Naming.
type Namer struct {
	naming  Naming
	nic     int
	side    string
	ip      *template.Template
	tags    []*template.Template
	names   map[Slot]string
	slotsOf map[string]Slot
}

// NewNamer checks a naming: each slot of the chassis must get a name of its own.
func NewNamer(n Naming) (*Namer, error) {
	if n.Name == "" {
		n.Name = DefaultName
	}
	out := &Namer{naming: n, names: map[Slot]string{}, slotsOf: map[string]Slot{}}
	switch side := strings.ToUpper(n.NIC); {
	case n.NIC == "" || n.NIC == "all":
	case side == "A" || side == "B":
		out.side = side
	default:
		i, err := strconv.Atoi(n.NIC)
		if err != nil || i < 1 || i > 99 {
			return nil, fmt.Errorf("NIC %q: want all, a number such as 1, or a switch, A or B", n.NIC)
		}
		out.nic = i
	}
	name, err := parseTemplate("name", n.Name)
	if err != nil {
		return nil, err
	}
	if n.IP != "" {
		if out.ip, err = parseTemplate("IP", n.IP); err != nil {
			return nil, err
		}
	}
	for _, text := range n.Tags {
		t, err := parseTemplate("tag", text)
		if err != nil {
			return nil, err
		}
		out.tags = append(out.tags, t)
	}
	return out, out.fill(name)
}

// fill makes the names of all slots.
func (n *Namer) fill(name *template.Template) error {
	for c := 1; c <= Cartridges; c++ {
		for i := 1; i <= NodesEach; i++ {
			slot := Slot{c, i}
			text, err := n.render(name, slot)
			if err != nil {
				return err
			}
			if first, twice := n.slotsOf[text]; twice {
				return fmt.Errorf("name template %q gives %s and %s one name, %q (it needs {{.Cartridge}} and {{.Node}})", n.naming.Name, first, slot, text)
			}
			if !isLabel(text) {
				return fmt.Errorf("name template %q gives %s the name %q, which is no DNS label (use a-z, 0-9 and '-', 63 at most)", n.naming.Name, slot, text)
			}
			n.names[slot], n.slotsOf[text] = text, slot
		}
	}
	return nil
}

func parseTemplate(what, text string) (*template.Template, error) {
	t, err := template.New(what).Option("missingkey=error").Funcs(template.FuncMap{
		"add": func(a, b int) int { return a + b },
		"mul": func(a, b int) int { return a * b },
	}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s template %q: %w", what, text, err)
	}
	return t, nil
}

func (n *Namer) render(t *template.Template, slot Slot) (string, error) {
	var b bytes.Buffer
	if err := t.Execute(&b, Place{n.naming.Chassis, slot.Cartridge, slot.Node, slot.String()}); err != nil {
		return "", fmt.Errorf("%s template: %w (it knows .Chassis, .Cartridge, .Node and .Slot)", t.Name(), err)
	}
	return b.String(), nil
}

// isLabel tells whether s is a DNS label in lower case (RFC 1123, 2.1).
func isLabel(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && s[0] != '-' && s[len(s)-1] != '-'
}

// SlotOf returns the slot that a name is of; false: it is no name of this
// chassis.
func (n *Namer) SlotOf(name string) (Slot, bool) {
	s, ok := n.slotsOf[name]
	return s, ok
}

// Want is a node as the chassis has it.
type Want struct {
	Slot Slot
	pools.PoolNode
}

// Wants names the nodes of an inventory.
func (n *Namer) Wants(inv *Inventory) ([]Want, error) {
	out := make([]Want, 0, len(inv.Nodes))
	for _, node := range inv.Nodes {
		w := Want{Slot: node.Slot, PoolNode: pools.PoolNode{Pool: n.naming.Pool, Node: pools.Node{Name: n.names[node.Slot], MACs: n.choose(node)}}}
		if n.ip != nil {
			text, err := n.render(n.ip, node.Slot)
			if err != nil {
				return nil, err
			}
			if w.IP, err = netip.ParseAddr(text); err != nil {
				return nil, fmt.Errorf("IP template %q gives %s %q, which is no address", n.naming.IP, node.Slot, text)
			}
		}
		for _, t := range n.tags {
			tag, err := n.render(t, node.Slot)
			if err != nil {
				return nil, err
			}
			w.Tags = append(w.Tags, tag)
		}
		out = append(out, w)
	}
	return out, nil
}

// choose takes the MACs of the cards that are wanted.
func (n *Namer) choose(node Node) []pools.MAC {
	var macs []pools.MAC
	for _, nic := range node.NICs {
		if (n.nic == 0 || n.nic == nic.Number) && (n.side == "" || n.side == nic.Switch) {
			macs = append(macs, nic.MAC)
		}
	}
	return macs
}
