package ilosim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// invalid is the answer to an unknown command.
const invalid = "Invalid command\n"

// run executes a command and returns its output.
func (c *Chassis) run(command string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fault(Locked):
		return "Account is locked. Contact your administrator.\n"
	case c.fault(NoRights):
		return "Error: user is not authorized to use this command.\n"
	case c.fault(Garbage):
		return strings.Repeat("0123456789abcdef", 10<<20/16)
	}
	words := strings.Fields(strings.ToLower(command))
	is := func(prefix string, n int) bool {
		return len(words) == n && strings.HasPrefix(strings.Join(words, " ")+" ", prefix+" ")
	}
	switch {
	case len(words) == 0:
		return ""
	case is("show node list", 3) && !c.fault(UnknownList):
		return c.list()
	case is("show node macaddr", 4):
		return c.about(words[3], c.macs)
	case is("show node power", 4):
		return c.about(words[3], c.powers)
	case is("show node info", 4):
		return c.about(words[3], c.infos)
	case is("show firmware", 2) && c.Format.Two:
		return "Firmware Versions:\n  Chassis Manager:\n  HPE Moonshot Chassis Manager 2.0: 2.0-b176\n"
	case is("show node mgmtaddr4", 4) && c.Format.Two:
		return c.about(words[3], c.management)
	case is("show chassis autopower", 3):
		return "Chassis Auto-Power: On\n"
	case is("set node power on", 5), is("set node power off", 5), is("set node power off force", 6):
		return c.switchPower(words[3] == "on", len(words) == 6, words[len(words)-1])
	case is("set node bootonce", 5):
		return c.about(words[4], func(nodes []*Node) string {
			var b strings.Builder
			for _, n := range nodes {
				c.setBootOnce(n, words[3])
				fmt.Fprintf(&b, "%s bootonce: %s\n", n.ID(), cmp.Or(n.bootOnce, "No Override"))
			}
			return b.String()
		})
	}
	return invalid
}

// about calls do with the nodes of a list such as c1n1,c2n1 or all.
func (c *Chassis) about(list string, do func([]*Node) string) string {
	nodes, ok := c.pick(list)
	if !ok {
		return "Invalid node: " + list + "\n"
	}
	return do(nodes)
}

// pick reads a list of nodes: all, c1n1,c2n1, or with a shared end c1,5,9n1.
func (c *Chassis) pick(list string) ([]*Node, bool) {
	if list == "all" {
		return c.sorted(), true
	}
	var out []*Node
	words := strings.Split(list, ",")
	_, tail, _ := strings.Cut(words[len(words)-1], "n")
	for _, w := range words {
		cart, node, has := strings.Cut(strings.TrimPrefix(w, "c"), "n")
		if !has {
			node = tail
		}
		x, errX := strconv.Atoi(cart)
		y, errY := strconv.Atoi(node)
		n := c.nodes[fmt.Sprintf("c%dn%d", x, y)]
		if errX != nil || errY != nil || n == nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

// list is "show node list".
func (c *Chassis) list() string {
	l := c.Format
	columns := []column{{"Slot", 4}, {"ID", 5}, {"Proc Manufacturer", 22}, {"Architecture", 20}, {"Memory", 6}, {"Power", 5}}
	switch {
	case l.Old:
		columns = append(columns, column{"Health", 6})
	case l.Extra:
		columns = append(columns, column{"Rack Unit", 9}, column{"Health", 8}, column{"Node Asset Tag", 14})
	default:
		columns = append(columns, column{"Status", 8}, column{"Node Asset Tag", 14})
	}
	var rows [][]string
	for i, n := range c.sorted() {
		r := l.slot(n)
		if n.Empty {
			rows = append(rows, append(r, "N/A", "No Asset Information"))
			continue
		}
		r = append(r, n.Maker, n.Arch, n.Memory, c.powerOf(n))
		if l.Extra {
			r = append(r, "U7")
		}
		r = append(r, "OK")
		if !l.Old {
			tag := n.AssetTag
			if l.BadBytes && i == 0 {
				tag = "\xe9tag\xe8re"
			}
			r = append(r, tag)
		}
		rows = append(rows, r)
	}
	return l.table(columns, rows)
}

// macs is "show node macaddr".
func (c *Chassis) macs(nodes []*Node) string {
	l := c.Format
	cards := 2
	for _, n := range nodes {
		cards = max(cards, len(n.MACs))
	}
	columns := []column{{"Slot", 4}, {"ID", 5}}
	if l.Extra {
		columns = append(columns, column{"Speed", 6})
	}
	for i := range cards {
		name := fmt.Sprintf("NIC %d (Switch %c)", i+1, "AB"[i%2])
		if l.Extra {
			name = fmt.Sprintf("Port %d", i+1)
		}
		columns = append(columns, column{name, 17})
	}
	var rows [][]string
	for _, n := range nodes {
		r := l.slot(n)
		if l.Extra {
			r = append(r, "10G")
		}
		for i := range cards {
			mac := "N/A"
			if i < len(n.MACs) && !n.Empty {
				mac = l.mac(n.MACs[i])
			}
			r = append(r, mac)
		}
		rows = append(rows, r)
	}
	return l.table(columns, rows)
}

// management is "show node mgmtaddr4": each cartridge has an iLO of its own,
// at the chassis' address and port 735+slot.
func (c *Chassis) management(nodes []*Node) string {
	var rows [][]string
	for _, n := range nodes {
		rows = append(rows, append(c.Format.slot(n), fmt.Sprintf("192.168.4.125:%d", 735+n.Cartridge)))
	}
	return c.Format.table([]column{{"Slot", 4}, {"ID", 5}, {"Management Address", 18}}, rows)
}

// powers is "show node power".
func (c *Chassis) powers(nodes []*Node) string {
	var b strings.Builder
	for _, n := range nodes {
		if c.Format.Old {
			fmt.Fprintf(&b, "\nCartridge #%d\n  Node #%d\n\tPower State: %s\n", n.Cartridge, n.Number, c.powerOf(n))
		} else {
			fmt.Fprintf(&b, "\nc%d: Cartridge %s\n\tPower State: %s\n", n.Cartridge, n.ID(), c.powerOf(n))
		}
	}
	return b.String()
}

// infos is "show node info".
func (c *Chassis) infos(nodes []*Node) string {
	var b strings.Builder
	for _, n := range nodes {
		if c.Format.Old {
			fmt.Fprintf(&b, "\nCartridge #%d \n", n.Cartridge)
		} else {
			fmt.Fprintf(&b, "\n  c%d: #Cartridge %s\n", n.Cartridge, n.ID())
		}
		fmt.Fprintf(&b, "  Type: Compute\n  Manufacturer: HP\n  Product Name: %s\n  Serial Number: %s\n", n.Model, n.Serial)
	}
	return b.String()
}

// switchPower is "set node power"; c.mu is held, and released while the hook
// runs.
func (c *Chassis) switchPower(on, force bool, list string) string {
	nodes, ok := c.pick(list)
	if !ok {
		return "Invalid node: " + list + "\n"
	}
	var notify []func()
	for _, n := range slices.Clone(nodes) {
		notify = append(notify, c.setPower(n, on, force))
	}
	c.mu.Unlock()
	for _, n := range notify {
		n()
	}
	c.mu.Lock()
	return "\nRequest sent.\n"
}
