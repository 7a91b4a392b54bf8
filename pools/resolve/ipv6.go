package resolve

import (
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
)

// own returns the address in a family that the node has with a card; the zero Addr for none.
func (e *entry) own(ipv6 bool, card pools.MAC) netip.Addr {
	switch {
	case !ipv6:
		return e.address
	case e.slaac.IsValid() && slices.Contains(e.MACs, card):
		return pools.EUI64(e.slaac, card)
	}
	return e.IP6
}

// subnetOf returns the index of the entry's subnet in a family, or -1.
func (e *entry) subnetOf(ipv6 bool) int {
	if ipv6 {
		return e.subnet6
	}
	return e.subnet
}

// serves reports whether a catch-all pool leases addresses of a family. A pool without
// ranges takes machines of both: to ignore them, or in proxy mode.
func (e *entry) serves(ipv6 bool) bool { return e.subnetOf(ipv6) >= 0 || e.subnetOf(!ipv6) < 0 }

// onlySubnet returns the index of the only subnet of a family, or -1.
func (f *Farm) onlySubnet(ipv6 bool) int {
	only := -1
	for i := range f.Config.Subnets {
		switch {
		case f.Config.Subnets[i].Is6() != ipv6:
		case only >= 0:
			return -1
		default:
			only = i
		}
	}
	return only
}

// hostOf returns an address as the host of a URL.
func hostOf(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

// Locals6 returns the IPv6 addresses of the interfaces that this server serves.
func (f *Farm) Locals6() []Local { return f.addresses.local6 }

// within6 returns the boot address of this server in an IPv6 network, else its first IPv6
// address.
func (a *addresses) within6(network netip.Prefix, elsewhere bool) Advertised {
	if elsewhere || network.Contains(a.listeners.Address) {
		return a.fallback6
	}
	for _, l := range a.local6 {
		if network.Contains(l.Prefix.Addr()) {
			return a.advertise6(l)
		}
	}
	return a.fallback6
}

func (a *addresses) advertise6(l Local) Advertised {
	return a.advertise(l.Prefix.Addr(), pools.Origin{Path: "address of " + l.Interface})
}

// why6 adds the origins of IPv6 addresses.
func (f *Farm) why6(p *Plan, why Why) {
	if p.Address6.IsValid() {
		why["address6"] = p.entry.Source
		switch {
		case p.entry.slaac.IsValid():
			why["address6"] = f.at(f.subnetPath(p.entry.subnet6) + ".slaac")
		case p.entry.path != "":
			why["address6"] = f.at(p.entry.path + ".ip6")
		}
	}
	if p.Range6.IsValid() {
		why["range6"] = f.at(f.poolPath(p.entry.pool) + ".range6")
	}
	if p.query.IPv6 {
		delete(why, "address")
		delete(why, "range")
		for _, field := range [...]string{"address", "range"} {
			if o, ok := why[field+"6"]; ok {
				why[field] = o
			}
		}
	}
}

// tftpURL returns the file of a boot target as a URL, since DHCPv6 has no other form
// (RFC 5970, section 3.1).
func tftpURL(t BootTarget) string {
	if t.File == "" || strings.Contains(t.File, "://") {
		return t.File
	}
	return "tftp://" + hostOf(t.Server) + "/" + t.File
}
