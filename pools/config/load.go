package config

import (
	"net"
	"net/netip"
	"slices"

	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/config/decode"
	"drover/pools/config/mistake"
)

// maxConfig bounds the config file, in bytes. 10 000 machines need 2 MB. To decode YAML
// takes some forty times its size in memory.
const maxConfig = 4 << 20

// Load reads and checks the config file at path, together with nodes added over
// the API. All mistakes are returned at once, as [mistake.Errors].
func Load(path string, added ...pools.PoolNode) (*pools.Farm, error) {
	return newFarm(load(path, added))
}

// Parse is [Load] for a config that is already in memory. Errors call it file, and
// relative paths start at the directory of file.
func Parse(file string, data []byte, added ...pools.PoolNode) (*pools.Farm, error) {
	return newFarm(parse(file, data, added))
}

func newFarm(c pools.Checked, err error) (*pools.Farm, error) {
	if err != nil {
		return nil, err
	}
	return pools.NewFarm(c), nil
}

func load(path string, added []pools.PoolNode) (pools.Checked, error) {
	data, err := atomicfile.Read(path, maxConfig)
	if err != nil {
		return pools.Checked{}, err
	}
	return parse(path, data, added)
}

func parse(file string, data []byte, added []pools.PoolNode) (pools.Checked, error) {
	c := pools.Checked{Source: file}
	var errs mistake.Errors
	if c.Lines, errs = decode.YAML(file, data, &c.Config); len(c.Lines) == 0 { // not YAML at all: there is nothing to check
		return c, errs
	}
	c.Added, c.Shadowed = dropShadowed(&c.Config, added)
	k := newChecker(&c, errs)
	k.all(c.Added)
	k.chassisList()
	c.Listeners, c.Local = c.Config.Server, Locals(c.Config.Server.Interfaces)
	c.Local6 = Locals6(c.Config.Server.Interfaces)
	return c, k.errs.Err()
}

// withNodes returns a checked config with other nodes of the API. It does not check
// chassis again, because their 360 node names each do not depend on the nodes.
func withNodes(c pools.Checked, added []pools.PoolNode) (pools.Checked, error) {
	c.Added = added
	k := newChecker(&c, nil)
	k.all(added)
	return c, k.errs.Err()
}

// Locals returns the IPv4 addresses of the named interfaces of this host, in the order of
// the names, or of all its interfaces but the loopback if no name is given.
func Locals(names []string) (found []pools.Local) {
	interfaces, _ := net.Interfaces() // without any, no address is known
	if len(names) > 0 {
		interfaces = named(interfaces, names)
	}
	for _, i := range interfaces {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && p.Addr().Is4() && (len(names) > 0 || !p.Addr().IsLoopback()) {
				found = append(found, pools.Local{Interface: i.Name, Prefix: p})
			}
		}
	}
	return found
}

// Locals6 returns the IPv6 addresses of the named interfaces of this host that hosts
// elsewhere can reach.
func Locals6(names []string) (found []pools.Local) {
	interfaces, _ := net.Interfaces() // without any, no address is known
	for _, i := range named(interfaces, names) {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && isHost6(p.Addr()) && !p.Addr().IsLinkLocalUnicast() {
				found = append(found, pools.Local{Interface: i.Name, Prefix: p})
			}
		}
	}
	return found
}

// named returns the interfaces with these names, in their order.
func named(all []net.Interface, names []string) (out []net.Interface) {
	for _, name := range names {
		if i := slices.IndexFunc(all, func(i net.Interface) bool { return i.Name == name }); i >= 0 {
			out = append(out, all[i])
		}
	}
	return out
}
