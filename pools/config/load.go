package config

import (
	"net"
	"net/netip"

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
	c.Advertised = advertised(&c.Config.Server)
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

// advertised returns the address and the base URLs that are sent to nodes.
func advertised(s *pools.Server) pools.Advertised {
	r := pools.Advertised{Address: s.Address}
	if !r.Address.IsValid() && len(s.Interfaces) > 0 {
		r.Address = FirstIPv4(s.Interfaces[0])
	}
	base := func(scheme, listen, usual string) string {
		_, port, err := net.SplitHostPort(listen)
		switch {
		case err != nil:
			return ""
		case port == usual:
			return scheme + r.Address.String()
		}
		return scheme + r.Address.String() + ":" + port
	}
	r.URL, r.SecureURL = base("http://", s.HTTP, "80"), base("https://", s.HTTPS, "443")
	return r
}

// FirstIPv4 returns the first IPv4 address of a network interface; the zero
// Addr when there is no such interface on this host, or no address.
func FirstIPv4(name string) netip.Addr {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}
	}
	addrs, _ := ifi.Addrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}
