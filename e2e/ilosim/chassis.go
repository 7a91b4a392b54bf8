package ilosim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Chassis is a Moonshot chassis with its manager. Set the fields before it
// serves; after that use the methods, which are safe for concurrent use.
type Chassis struct {
	Name   string // shown by the prompt and REST; default hpiLO
	Serial string

	User, Password string

	Format  Format
	Profile Profile // default [Modern]

	// PowerDelay is how long a node is PoweringOn before it is On; half of it
	// is how long it takes to be Off. Real ones need up to 40 s.
	PowerDelay time.Duration

	LoginDelay   time.Duration // before a login is answered
	CommandDelay time.Duration // before a command is answered

	// OnAction is called after a node was switched on or off, and must return
	// soon. nil: no call.
	OnAction func(slot string, a Action)

	// Now is the clock; nil is the system's.
	Now func() time.Time

	mu       sync.Mutex
	nodes    map[string]*Node
	faults   map[Fault]int
	logins   int // attempts
	sessions int // successful logins
	tokens   map[string]bool
}

// Action is a change of a node's power.
type Action struct {
	On  bool // switched on, else off
	PXE bool // it boots from the network, this once
}

// Node is a node in a slot, or an empty slot.
type Node struct {
	Cartridge, Number int

	Empty    bool
	Model    string // "ProLiant m710x Server Cartridge"
	Serial   string
	Maker    string // default Intel Corporation
	Arch     string // default x86 Architecture
	Memory   string // default 32 GB
	AssetTag string
	MACs     []string // as printed; "N/A" for a card without address

	power    string // On or Off: the target of the last command
	since    time.Time
	stuck    string // the state set by [Chassis.HoldPower]
	bootOnce string
}

// ID returns the slot, c12n1.
func (n *Node) ID() string { return fmt.Sprintf("c%dn%d", n.Cartridge, n.Number) }

// New returns a chassis with a cartridge of that many nodes in each of the
// slots 1 to cartridges, all off. MACs and serials are made from seed, so that
// chassis with different seeds share none.
func New(seed byte, cartridges, nodes, nics int) *Chassis {
	c := &Chassis{User: "Administrator", Password: "correct horse", Serial: fmt.Sprintf("CZ3402%02X", seed)}
	for x := 1; x <= cartridges; x++ {
		for y := 1; y <= nodes; y++ {
			n := Node{Cartridge: x, Number: y, Model: "ProLiant m710x Server Cartridge", Serial: fmt.Sprintf("CN%02X%02d%d", seed, x, y)}
			for i := range nics {
				n.MACs = append(n.MACs, fmt.Sprintf("94:57:a5:%02x:%02x:%02x", seed, x, (y-1)*8+i))
			}
			c.Put(n)
		}
	}
	return c
}

// Put places a node into its slot, switched off, and replaces any node there.
func (c *Chassis) Put(n Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes == nil {
		c.nodes = map[string]*Node{}
	}
	n.Maker = cmp.Or(n.Maker, "Intel Corporation")
	n.Arch = cmp.Or(n.Arch, "x86 Architecture")
	n.Memory = cmp.Or(n.Memory, "32 GB")
	n.power = "Off"
	c.nodes[n.ID()] = &n
}

// Remove takes a slot out of all lists, as if the cartridge had no such node.
func (c *Chassis) Remove(slot string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, slot)
}

// Swap exchanges the contents of two slots, as when cartridges are moved.
func (c *Chassis) Swap(a, b string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, y := *c.nodes[a], *c.nodes[b]
	x.Cartridge, y.Cartridge = y.Cartridge, x.Cartridge
	x.Number, y.Number = y.Number, x.Number
	c.nodes[a], c.nodes[b] = &y, &x
}

// Edit changes a node.
func (c *Chassis) Edit(slot string, edit func(*Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(c.nodes[slot])
}

// HoldPower makes a node show one power state, such as "Unavailable", until it
// is called with "".
func (c *Chassis) HoldPower(slot, state string) {
	c.Edit(slot, func(n *Node) { n.stuck = state })
}

// Power returns the power state that the chassis shows: On, Off, PoweringOn ...
func (c *Chassis) Power(slot string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[slot]
	if n == nil {
		return ""
	}
	return c.powerOf(n)
}

// Logins returns the number of login attempts.
func (c *Chassis) Logins() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logins
}

func (c *Chassis) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// sorted returns all nodes as they are in the chassis; c.mu is held.
func (c *Chassis) sorted() []*Node {
	return slices.SortedFunc(maps.Values(c.nodes), func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Cartridge, b.Cartridge), cmp.Compare(a.Number, b.Number))
	})
}

// powerOf is the state of a node now; c.mu is held.
func (c *Chassis) powerOf(n *Node) string {
	gone := c.now().Sub(n.since)
	switch {
	case n.stuck != "":
		return n.stuck
	case n.power == "On" && gone < c.PowerDelay:
		return "PoweringOn"
	case n.power == "Off" && gone < c.PowerDelay/2:
		return "PoweringOff"
	}
	return n.power
}

// setPower switches a node; c.mu is held. The caller calls notify after it has
// unlocked c.mu.
func (c *Chassis) setPower(n *Node, on, force bool) (notify func()) {
	nothing := func() {}
	want := map[bool]string{true: "On", false: "Off"}[on]
	switch {
	case n.Empty || n.stuck != "" || n.power == want:
		return nothing
	case !on && !force && c.fault(SoftOffIgnored):
		return nothing
	case on && c.powerOf(n) == "PoweringOff":
		return nothing // a real node ignores the command then
	case on && c.fault(OnIgnored), !on && c.fault(OffIgnored):
		return nothing
	}
	n.power, n.since = want, c.now()
	a := Action{On: on}
	if on {
		a.PXE = n.bootOnce == "PXE"
		n.bootOnce = ""
	} else if c.fault(BootOnceLost) {
		n.bootOnce = ""
	}
	hook, slot := c.OnAction, n.ID()
	if hook == nil {
		return nothing
	}
	return func() { hook(slot, a) }
}

// setBootOnce sets where a node boots from the next time; c.mu is held.
func (c *Chassis) setBootOnce(n *Node, target string) {
	if !c.fault(BootOnceIgnored) {
		n.bootOnce = strings.ToUpper(target)
	}
}
