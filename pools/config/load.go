package config

import (
	"net"
	"net/netip"
	"slices"

	"drover/internal/ifaddr"
	"drover/pools"
	"drover/pools/config/declared"
	"drover/pools/config/include"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// Load reads and checks the config file at path, together with nodes added over
// the API. All mistakes are returned at once, as [mistake.Errors]. With server.objects nodes
// whose pool, subnet or tags are not in the file are left out: these may be objects.
func Load(path string, nodes ...pools.PoolNode) (*resolve.Farm, error) {
	farm, _, err := Source{File: path}.Load(nodes...)
	return farm, err
}

// Parse is [Load] for a config that is already in memory. Errors call it file, and
// relative paths start at the directory of file. It reads no files: a config that includes
// some is refused.
func Parse(file string, data []byte, nodes ...pools.PoolNode) (*resolve.Farm, error) {
	return ParseText(&include.Text{File: file, Main: data, From: include.Nowhere}, nodes...)
}

// ParseText is [Load] for the text of a config.
func ParseText(t *include.Text, nodes ...pools.PoolNode) (*resolve.Farm, error) {
	return newFarm(decodeText(t).with(nil, nodes, allWait))
}

func newFarm(c resolve.Checked, err error) (*resolve.Farm, error) {
	if err != nil {
		return nil, err
	}
	return resolve.NewFarm(c), nil
}

// decoded is the config as it was decoded.
type decoded struct {
	resolve.Checked
	errs mistake.Errors // of its syntax
}

func decodeText(t *include.Text) (d decoded) {
	d.errs = t.Decode(&d.Checked)
	return d
}

// with returns the file's config with objects and the nodes of the API, checked. Nodes may wait
// for what may be an object, as mayWait says; nil: none. It leaves d as it is.
func (d decoded) with(all []*declared.Object, nodes []pools.PoolNode, mayWait func(name string) bool) (resolve.Checked, error) {
	c := d.Checked
	if len(c.Lines) == 0 { // not YAML at all: there is nothing to check
		return c, d.errs
	}
	errs := append(slices.Clip(d.errs), declared.Add(&c, all)...)
	nodes, c.Waiting = splitWaiting(&c.Config, nodes, mayWait)
	c.Added, c.Shadowed = splitShadowed(&c.Config, nodes)
	k := newChecker(&c, errs)
	k.all(c.Added)
	k.chassisList()
	c.Listeners, c.Local = c.Config.Server, Locals(c.Config.Server.Interfaces)
	c.Local6 = Locals6(c.Config.Server.Interfaces)
	return c, k.errs.Err()
}

// withNodes returns a checked config with other nodes of the API. It does not check
// chassis again, because their 360 node names each do not depend on the nodes.
func withNodes(c resolve.Checked, nodes []pools.PoolNode, mayWait func(name string) bool) (resolve.Checked, error) {
	c.Added, c.Waiting = splitWaiting(&c.Config, nodes, mayWait)
	k := newChecker(&c, nil)
	k.all(c.Added)
	return c, k.errs.Err()
}

// Locals returns the IPv4 addresses of the named interfaces of this host, in the order of
// the names, or all of this host but the loopback ones if no name is given.
func Locals(names []string) (found []resolve.Local) {
	if len(names) == 0 {
		addrs, _ := net.InterfaceAddrs() // one question to the kernel, however many interfaces there are
		return locals("this host", addrs, func(a netip.Addr) bool { return a.Is4() && !a.IsLoopback() })
	}
	return localsOf(names, netip.Addr.Is4)
}

// localsOf returns the addresses of the named interfaces for which wanted returns true.
func localsOf(names []string, wanted func(netip.Addr) bool) (found []resolve.Local) {
	for _, name := range names {
		i, err := net.InterfaceByName(name)
		if err != nil {
			continue // it may come later
		}
		addrs, _ := i.Addrs() // none: it has gone
		found = append(found, locals(name, addrs, wanted)...)
	}
	return found
}

func locals(name string, addrs []net.Addr, wanted func(netip.Addr) bool) (found []resolve.Local) {
	for _, p := range ifaddr.Prefixes(addrs) {
		if wanted(p.Addr()) {
			found = append(found, resolve.Local{Interface: name, Prefix: p})
		}
	}
	return found
}

// localMACs returns the MACs of this host.
func localMACs() (all []pools.MAC) {
	interfaces, _ := net.Interfaces() // none: the kernel refuses, and no packet goes either
	for _, i := range interfaces {
		if len(i.HardwareAddr) == len(pools.MAC{}) {
			all = append(all, pools.MAC(i.HardwareAddr))
		}
	}
	return all
}
