package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"drover/pools"
	"drover/pools/config/listen"
	"drover/pools/config/mistake"
	"drover/pools/option"
)

// minInterval is the shortest interval between two readings of a chassis. Some chassis
// need five seconds for a login.
const minInterval = 10 * time.Second

// chassisList checks the chassis. The node names of all chassis must differ, because a
// node without a recorded slot is identified by its name.
func (c *checker) chassisList() {
	seen, address, names := map[string]string{}, map[string]int{}, map[string]int{}
	for i, ch := range c.cfg.Chassis {
		path := fmt.Sprintf("chassis[%d]", i)
		about := fmt.Sprintf("chassis %q", ch.Name)
		c.name(path, "chassis", ch.Name, seen)
		c.chassisLogin(path, about, ch)
		if first, dup := address[ch.Address]; dup && ch.Address != "" {
			c.failf(path+".address", "remove one", "%s: %s is already the address of chassis %q", about, ch.Address, c.cfg.Chassis[first].Name)
			c.conflict(c.at(fmt.Sprintf("chassis[%d]", first)))
		} else {
			address[ch.Address] = i
		}
		if !slices.ContainsFunc(c.cfg.Pools, func(p pools.Pool) bool { return p.Name == ch.Pool }) {
			c.failf(path+".pool", mistake.Hint(ch.Pool, c.poolNames(), "declare it under pools:"), "%s: unknown pool %q", about, ch.Pool)
		}
		c.slotTags(path+".tags", about, ch)
		c.slotNames(i, about, ch, names)
		c.slotAddresses(path, about, ch)
		if n, err := strconv.Atoi(ch.NIC); !slices.Contains([]string{"", "all", "A", "B", "a", "b"}, ch.NIC) && (err != nil || n < 1 || n > 99) {
			c.failf(path+".nic", "nic: all, a number such as 1, or a switch, A or B", "%s: %q names no network cards", about, ch.NIC)
		}
		if d := ch.Interval.D(); d != 0 && (d < minInterval || d > 24*time.Hour) {
			c.failf(path+".interval", "10m is often enough", "%s: interval %s is not from %s to 24h", about, ch.Interval, pools.Duration(minInterval))
		}
	}
}

func (c *checker) poolNames() (names []string) {
	for _, p := range c.cfg.Pools {
		names = append(names, p.Name)
	}
	return names
}

// chassisLogin checks the manager's address and login.
func (c *checker) chassisLogin(path, about string, ch pools.Chassis) {
	if ch.Address == "" {
		c.failf(path, "address: ilo-m1.example.org", "%s has no address", about)
	} else {
		c.report(path+".address", about+": address", managerAddress(ch.Address))
	}
	c.user(path+".user", about, ch.User)
	if ch.PasswordFile == "" {
		c.failf(path, "passwordFile: "+ch.Name+".pass", "%s has no passwordFile", about)
	}
	c.report(path+".via", about, oneOf("via", string(ch.Via), string(pools.ViaSSH), string(pools.ViaREST)))
	if ch.HostKey != "" && !c.syntax.hostKey.MatchString(ch.HostKey) {
		c.failf(path+".hostKey", "write SHA256: and 43 characters, as ssh-keygen -l does, or leave it out to pin it at first use", "%s: %q is no fingerprint of a host key", about, ch.HostKey)
	}
	c.tlsPin(path+".tlsPin", about, ch.TLSPin)
	switch {
	case ch.HostKey != "" && ch.Via == pools.ViaREST:
		c.failf(path+".hostKey", "give tlsPin", "%s: a host key is of SSH, and it is asked over REST", about)
	case ch.TLSPin != "" && ch.Via == pools.ViaSSH:
		c.failf(path+".tlsPin", "give hostKey", "%s: a tlsPin is of HTTPS, and it is asked over SSH", about)
	}
}

func (c *checker) user(path, about, user string) {
	if strings.ContainsFunc(user, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		c.failf(path, "user: Administrator", "%s: user %q has blanks or control characters", about, user)
	}
}

func (c *checker) tlsPin(path, about, pin string) {
	if pin != "" && !c.syntax.pin.MatchString(pin) {
		c.failf(path, "write sha256: and 64 hex digits, or leave it out to pin it at first use", "%s: %q is no SHA-256 of a certificate", about, pin)
	}
}

// managerAddress checks host or host:port.
func managerAddress(s string) error {
	if strings.Contains(s, "://") {
		return pools.Hint("write host or host:port; via: says how it is asked", "%q is a URL", s)
	}
	if _, _, err := net.SplitHostPort(s); err == nil {
		return listen.HostPort(s, false)
	}
	if _, err := netip.ParseAddr(s); err != nil && !option.IsDomain(s) {
		return pools.Hint("write host or host:port", "%q is neither an address nor a host name", s)
	}
	return nil
}

// slotTags checks the tag templates of a chassis. Only a tag that is the same in all
// slots must exist: it is not known which slots hold nodes.
func (c *checker) slotTags(path, about string, ch pools.Chassis) {
	for i, text := range ch.Tags {
		at := fmt.Sprintf("%s[%d]", path, i)
		t, err := pools.ParseTemplate("tag", text)
		if err != nil {
			c.report(at, about, pools.Hint("write a tag, or in-{{.Chassis}}", "%v", err))
			continue
		}
		first, err := pools.NewBay(ch.Name, pools.Slot{Cartridge: 1, Node: 1}).Render(t)
		last, _ := pools.NewBay(ch.Name, pools.Slot{Cartridge: pools.Cartridges, Node: pools.NodesEach}).Render(t)
		switch {
		case err != nil:
			c.report(at, about, pools.Hint("write a tag, or in-{{.Chassis}}", "%v", err))
		case first == last && !slices.Contains(c.tags, first):
			c.failf(at, mistake.Hint(first, c.tags, "declare it under tags:"), "%s: unknown tag %q", about, first)
		}
	}
}

// slotNames checks that each slot gets a unique name. It stops at the first mistake,
// because the other slots have the same. The names have the index of their chassis.
func (c *checker) slotNames(i int, about string, ch pools.Chassis, names map[string]int) {
	const hint = "nameTemplate: " + pools.DefaultNodeName
	path := fmt.Sprintf("chassis[%d]", i)
	t, err := pools.ParseTemplate("name", ch.NameTemplate)
	if err != nil {
		c.report(path+".nameTemplate", about, pools.Hint(hint, "%v", err))
		return
	}
	own := map[string]string{}
	for _, slot := range pools.Slots() {
		bay := pools.NewBay(ch.Name, slot)
		name, err := bay.Render(t)
		switch {
		case err != nil:
			c.report(path+".nameTemplate", about, pools.Hint(hint, "%v", err))
			return
		case !c.syntax.label.MatchString(name):
			if c.syntax.label.MatchString(ch.Name) || c.isSet(path+".nameTemplate") {
				c.failf(path+".nameTemplate", "use a-z, 0-9 and '-', 63 at most", "%s: the name of %s is %q, which is not a DNS label", about, bay.Slot, name)
			}
			return
		case own[name] != "":
			c.failf(path+".nameTemplate", hint, "%s: %s and %s would both be named %q", about, own[name], bay.Slot, name)
			return
		}
		if first, dup := names[name]; dup {
			c.failf(path+".nameTemplate", hint, "%s: its %s would be named %q, as one of chassis %q", about, bay.Slot, name, c.cfg.Chassis[first].Name)
			c.conflict(c.at(fmt.Sprintf("chassis[%d]", first)))
			return
		}
		own[name] = bay.Slot
	}
	for name := range own {
		names[name] = i
	}
}

// slotAddresses checks the addresses of the first and the last cartridge that are
// chosen.
func (c *checker) slotAddresses(path, about string, ch pools.Chassis) {
	chosen, err := pools.ParseSelection(ch.Nodes)
	if err != nil {
		c.report(path+".nodes", about, err)
		return
	}
	const hint = "ipTemplate: 10.28.{{add 36 .Cartridge}}.{{.Node}}"
	if ch.IPTemplate == "" {
		if ch.Interval != 0 && !c.proxy() {
			c.failf(path, hint, "%s is asked by itself and has no ipTemplate: a new node needs an address", about)
		}
		return
	}
	t, err := pools.ParseTemplate("IP", ch.IPTemplate)
	first, last := chosen.Cartridges()
	for _, cartridge := range []int{first, last} {
		text := ""
		if err == nil {
			text, err = pools.NewBay(ch.Name, pools.Slot{Cartridge: cartridge, Node: 1}).Render(t)
		}
		if err != nil {
			c.report(path+".ipTemplate", about, pools.Hint(hint, "%v", err))
			return
		}
		a, bad := netip.ParseAddr(text)
		if bad != nil || c.cfg.SubnetOf(a) < 0 {
			c.failf(path+".ipTemplate", hint, "%s: the address of c%dn1 is %q, which is in none of the subnets", about, cartridge, text)
			return
		}
	}
}

// slotAndPower checks the slot of a node and its power settings.
func (c *checker) slotAndPower(about, path string, n pools.Node, here use, used *firstUses, fail func(field, hint, format string, args ...any)) {
	if p := n.ChassisSlot; !p.IsZero() {
		first, dup := used.slot[p]
		slot, ok := pools.ParseSlot(p.Slot)
		switch {
		case !c.syntax.label.MatchString(p.Chassis) || !ok || !slot.Valid() || slot.String() != p.Slot:
			fail(".place", "place: {chassis: m1, slot: c12n1}", "%s: %q in %q is no place", about, p.Slot, p.Chassis)
		case dup:
			fail(".place", "a slot holds one node: remove the place from the other", "%s: %s is already that of %s", about, p, first)
			c.conflict(first.at)
		default:
			used.slot[p] = here
		}
	}
	p := n.Power
	if p == nil {
		return
	}
	if path == "" {
		fail(".power", "declare the node in the config file", "%s: power names files and programs of the server, which is for its config file alone", about)
		return
	}
	if err := oneOf("driver", string(p.Driver), string(pools.Redfish), string(pools.IPMI), string(pools.Exec)); err != nil {
		c.report(path+".power.driver", about+": power", err)
		return
	}
	c.user(path+".power.user", about, p.User)
	c.tlsPin(path+".power.tlsPin", about, p.TLSPin)
	network := p.Driver != pools.Exec
	switch {
	case network && p.Address == "":
		fail(".power", "address: ilo-n1.example.org", "%s: power over %s needs an address", about, p.Driver)
	case network && p.PasswordFile == "":
		fail(".power", "passwordFile: ilo.pass", "%s: power over %s needs a passwordFile", about, p.Driver)
	case network:
		if err := managerAddress(p.Address); err != nil {
			c.report(path+".power.address", about, err)
		}
	case p.Program == "":
		fail(".power", "program: /usr/local/bin/outlet", "%s: power by exec needs a program", about)
	case p.User != "" || p.PasswordFile != "" || p.TLSPin != "":
		fail(".power", "remove them: the program is not told", "%s: power by exec has no login", about)
	}
	switch {
	case p.System != "" && p.Driver != pools.Redfish:
		fail(".power.system", "remove it", "%s: only redfish has systems", about)
	case len(p.System) > 128 || strings.ContainsFunc(p.System, unicode.IsControl):
		fail(".power.system", "system: System_0", "%s: the system is no ID, name, serial number or UUID", about)
	}
	if len(p.Options) > 0 && p.Driver != pools.IPMI {
		fail(".power.options", "remove them", "%s: only ipmi has options", about)
	}
}
