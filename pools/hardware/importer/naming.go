package importer

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"text/template"

	"drover/pools"
	"drover/pools/hardware/moonshot"
)

// Naming describes the nodes of one chassis: names, addresses, pool, tags. Name, IP
// and Tags are templates over [pools.Bay].
type Naming struct {
	Chassis string
	Pool    string
	Name    string   // empty: pools.DefaultNodeName
	IP      string   // empty: nodes keep their address, and new nodes have none
	Tags    []string // empty: nodes keep their tags
	NIC     string   // "all", a number such as 1, or a switch such as A; empty: all

	// RecordSlot records the slot in each node. The recorded slot identifies the node,
	// which then keeps its name when the template changes.
	RecordSlot bool
}

// Namer is a checked [Naming], with the names of all slots.
type Namer struct {
	naming  Naming
	nic     int
	side    string
	ip      *template.Template
	tags    []*template.Template
	names   map[pools.Slot]string
	slotsOf map[string]pools.Slot
}

// NewNamer checks a naming. It returns an error for a bad template, and when two slots
// would have the same name.
func NewNamer(n Naming) (*Namer, error) {
	if n.Name == "" {
		n.Name = pools.DefaultNodeName
	}
	out := &Namer{naming: n, names: map[pools.Slot]string{}, slotsOf: map[string]pools.Slot{}}
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
	name, err := pools.ParseTemplate("name", n.Name)
	if err != nil {
		return nil, err
	}
	if n.IP != "" {
		if out.ip, err = pools.ParseTemplate("IP", n.IP); err != nil {
			return nil, err
		}
	}
	for _, text := range n.Tags {
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
			return fmt.Errorf("name template %q gives %s and %s one name, %q (it needs {{.Cartridge}} and {{.Node}})", n.naming.Name, first, slot, text)
		}
		if !isLabel(text) {
			return fmt.Errorf("name template %q gives %s the name %q, which is no DNS label (use a-z, 0-9 and '-', 63 at most)", n.naming.Name, slot, text)
		}
		n.names[slot], n.slotsOf[text] = text, slot
	}
	return nil
}

func (n *Namer) render(t *template.Template, slot pools.Slot) (string, error) {
	return pools.NewBay(n.naming.Chassis, slot).Render(t)
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
		return slot, ok && stored.ChassisSlot.Chassis == n.naming.Chassis
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
		w := ImportedNode{Slot: node.Slot, PoolNode: pools.PoolNode{Pool: n.naming.Pool, Node: pools.Node{Name: n.names[node.Slot], MACs: n.choose(node)}}}
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
		if n.naming.RecordSlot {
			w.ChassisSlot = pools.ChassisSlot{Chassis: n.naming.Chassis, Slot: node.String()}
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

// NamingOf returns the naming of a chassis of the config.
func NamingOf(c pools.Chassis) Naming {
	return Naming{Chassis: c.Name, Pool: c.Pool, Name: c.NameTemplate, IP: c.IPTemplate, Tags: c.Tags, NIC: c.NIC}
}
