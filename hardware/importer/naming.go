package importer

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"text/template"

	"drover/hardware/moonshot"
	"drover/pools"
)

// Namer makes nodes of the machines in one chassis: names, addresses, pool, tags.
type Namer struct {
	chassis pools.Chassis
	nic     int
	side    string
	ip      *template.Template
	tags    []*template.Template
	names   map[pools.Slot]string
	slotsOf map[string]pools.Slot

	// recordSlot records the slot in each node. The recorded slot identifies the node,
	// which then keeps its name when the template changes.
	recordSlot bool
}

// NewNamer checks the name, the templates and the cards of a chassis. Its address and its
// login are not used. Without a template for addresses, nodes keep theirs, and new ones
// have none. It returns an error for a bad template, and when two slots would have the
// same name.
func NewNamer(c pools.Chassis, recordSlot bool) (*Namer, error) {
	c.NameTemplate = cmp.Or(c.NameTemplate, pools.DefaultNodeName)
	out := &Namer{chassis: c, recordSlot: recordSlot, names: map[pools.Slot]string{}, slotsOf: map[string]pools.Slot{}}
	switch side := strings.ToUpper(c.NIC); {
	case c.NIC == "" || c.NIC == "all":
	case side == "A" || side == "B":
		out.side = side
	default:
		i, err := strconv.Atoi(c.NIC)
		if err != nil || i < 1 || i > 99 {
			return nil, fmt.Errorf("NIC %q: want all, a number such as 1, or a switch, A or B", c.NIC)
		}
		out.nic = i
	}
	name, err := pools.ParseTemplate("name", c.NameTemplate)
	if err != nil {
		return nil, err
	}
	if c.IPTemplate != "" {
		if out.ip, err = pools.ParseTemplate("IP", c.IPTemplate); err != nil {
			return nil, err
		}
	}
	for _, text := range c.Tags {
		t, err := pools.ParseTemplate("tag", text)
		if err != nil {
			return nil, err
		}
		out.tags = append(out.tags, t)
	}
	return out, out.fill(name)
}

// fill renders the names of all slots.
func (n *Namer) fill(name *template.Template) error {
	for _, slot := range pools.Slots() {
		text, err := n.render(name, slot)
		if err != nil {
			return err
		}
		if first, twice := n.slotsOf[text]; twice {
			return fmt.Errorf("name template %q gives %s and %s one name, %q (it needs {{.Cartridge}} and {{.Node}})", n.chassis.NameTemplate, first, slot, text)
		}
		if !isLabel(text) {
			return fmt.Errorf("name template %q gives %s the name %q, which is no DNS label (use a-z, 0-9 and '-', 63 at most)", n.chassis.NameTemplate, slot, text)
		}
		n.names[slot], n.slotsOf[text] = text, slot
	}
	return nil
}

func (n *Namer) render(t *template.Template, slot pools.Slot) (string, error) {
	return pools.NewBay(n.chassis.Name, slot).Render(t)
}

// isLabel reports whether s is a DNS label in lower case (RFC 1123, 2.1).
func isLabel(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && s[0] != '-' && s[len(s)-1] != '-'
}

// SlotOf returns the slot of a stored node: the recorded slot, or else the slot with its
// name. It returns false for a node of another chassis.
func (n *Namer) SlotOf(stored pools.NodeInfo) (pools.Slot, bool) {
	if !stored.ChassisSlot.IsZero() {
		slot, ok := pools.ParseSlot(stored.ChassisSlot.Slot)
		return slot, ok && stored.ChassisSlot.Chassis == n.chassis.Name
	}
	s, ok := n.slotsOf[stored.Name]
	return s, ok
}

// ImportedNode is a node of the farm, made from the inventory.
type ImportedNode struct {
	Slot pools.Slot
	pools.PoolNode
}

// Nodes returns the nodes of an inventory, with their names.
func (n *Namer) Nodes(inv *moonshot.Inventory) ([]ImportedNode, error) {
	out := make([]ImportedNode, 0, len(inv.Nodes))
	for _, node := range inv.Nodes {
		w := ImportedNode{Slot: node.Slot, PoolNode: pools.PoolNode{Pool: n.chassis.Pool, Node: pools.Node{Name: n.names[node.Slot], MACs: n.choose(node)}}}
		if n.ip != nil {
			text, err := n.render(n.ip, node.Slot)
			if err != nil {
				return nil, err
			}
			if w.IP, err = netip.ParseAddr(text); err != nil {
				return nil, fmt.Errorf("IP template %q gives %s %q, which is no address", n.chassis.IPTemplate, node.Slot, text)
			}
		}
		for _, t := range n.tags {
			tag, err := n.render(t, node.Slot)
			if err != nil {
				return nil, err
			}
			w.Tags = append(w.Tags, tag)
		}
		if n.recordSlot {
			w.ChassisSlot = pools.ChassisSlot{Chassis: n.chassis.Name, Slot: node.String()}
		}
		out = append(out, w)
	}
	return out, nil
}

// choose returns the MACs of the chosen cards.
func (n *Namer) choose(node moonshot.Node) []pools.MAC {
	var macs []pools.MAC
	for _, nic := range node.NICs {
		if (n.nic == 0 || n.nic == nic.Number) && (n.side == "" || n.side == nic.Switch) {
			macs = append(macs, nic.MAC)
		}
	}
	return macs
}
