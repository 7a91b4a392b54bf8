package resolve

import (
	"cmp"
	"net"
	"net/netip"
	"slices"

	"drover/pools"
)

// Advertised is what the machines of one network are told about this server: the boot
// address, and the base URLs with it.
type Advertised struct {
	Address   netip.Addr // the boot server; the zero Addr: none was found
	ID        netip.Addr // the DHCP server identifier; the zero Addr: the address of the interface
	URL       string     // of the node-facing HTTP listener, without a slash at its end; empty without an address
	SecureURL string     // of the node-facing HTTPS listener, likewise; empty: there is none

	from pools.Origin // of Address
}

// Local is an address of an interface that this server serves, with its network.
type Local struct {
	Interface string
	Prefix    netip.Prefix
}

// addresses is the index of the addresses of this server.
type addresses struct {
	listeners *pools.Server // the settings of the listeners
	local     []Local       // IPv4 addresses, in the order of server.interfaces
	local6    []Local       // likewise of IPv6
	fallback  Advertised    // for networks without an address of their own
	fallback6 Advertised    // likewise of IPv6
	bySubnet  []Advertised  // for each subnet
	byLocal   []Advertised  // for each of local, where the network is in no subnet
}

// indexAddresses finds the boot address of each network. That of a subnet is the first of
// these that exists:
//
//   - its address in the config,
//   - server.address, if it is in the subnet, or in no network of this server: it is then
//     that of a router or a load balancer, which forwards to this server,
//   - the address of an interface of this server in the subnet, unless the listeners are
//     bound to another one,
//   - the boot address of a subnet of the same layer-2 network,
//   - server.address, or the first address of the first interface.
//
// server.address counts for the subnets of its family alone.
func (f *Farm) indexAddresses(c *Checked) {
	f.addresses = addresses{listeners: &c.Listeners, local: c.Local, local6: c.Local6}
	a := &f.addresses
	f.indexFallbacks(c)
	for i, s := range c.Config.Subnets {
		if s.Is6() {
			a.bySubnet = append(a.bySubnet, a.within6(s.CIDR, f.elsewhere(c, true)))
		} else {
			a.bySubnet = append(a.bySubnet, a.within(s.CIDR, f.elsewhere(c, false)))
		}
		if s.Address.IsValid() {
			a.bySubnet[i] = a.advertise(s.Address, f.at(f.subnetPath(i)+".address"))
			a.bySubnet[i].ID = s.Address
		}
	}
	own := slices.Clone(a.bySubnet)
	for i, s := range c.Config.Subnets {
		if s.Is6() {
			continue
		}
		same := func(j int) bool {
			return s.Network != "" && s.Network == c.Config.Subnets[j].Network && !c.Config.Subnets[j].Is6()
		}
		for j := range own {
			if !a.bySubnet[i].Address.IsValid() && same(j) {
				a.bySubnet[i] = own[j]
			}
		}
		if !a.bySubnet[i].Address.IsValid() {
			a.bySubnet[i] = a.fallback
		}
	}
	for _, l := range a.local {
		own := a.within(l.Prefix.Masked(), f.elsewhere(c, false))
		if !own.Address.IsValid() {
			own = a.fallback
		}
		a.byLocal = append(a.byLocal, own)
	}
}

// indexFallbacks finds the boot addresses for networks without one of their own:
// server.address in its family, else the first address of the first interface. Where all
// subnets are of IPv6 and there is no IPv4 address, that of IPv6 is the one of both.
func (f *Farm) indexFallbacks(c *Checked) {
	a, set, at := &f.addresses, c.Listeners.Address, f.at("server.address")
	a.fallback, a.fallback6 = a.advertise(set, at), a.advertise(set, at)
	if len(c.Listeners.Interfaces) > 0 {
		at = pools.Origin{Path: "first address of " + c.Listeners.Interfaces[0]}
	}
	first := func(local []Local) Advertised {
		if len(local) > 0 {
			return a.advertise(local[0].Prefix.Addr(), pools.Origin{Path: "first address of " + local[0].Interface})
		}
		return Advertised{from: at}
	}
	if !set.Is4() {
		a.fallback = first(c.Local)
	}
	if !set.Is6() {
		a.fallback6 = first(c.Local6)
	}
	if !a.fallback.Address.IsValid() && c.Config.HasIPv6() && !c.Config.HasIPv4() {
		a.fallback = a.fallback6
	}
}

// elsewhere reports whether server.address is set to one of a family that is in no network
// of this server.
func (f *Farm) elsewhere(c *Checked, ipv6 bool) bool {
	set := c.Listeners.Address
	holds := func(l Local) bool { return l.Prefix.Contains(set) }
	return set.IsValid() && set.Is6() == ipv6 && c.Config.SubnetOf(set) < 0 &&
		!slices.ContainsFunc(c.Local, holds) && !slices.ContainsFunc(c.Local6, holds)
}

// within returns the boot address of this server in a network, without one if there is none.
func (a *addresses) within(network netip.Prefix, elsewhere bool) Advertised {
	if elsewhere || network.Contains(a.listeners.Address) {
		return a.fallback
	}
	for _, l := range a.local {
		own := l.Prefix.Addr()
		if !network.Contains(own) || !covers(a.listeners.TFTP, own) {
			continue
		}
		r := a.advertise(own, pools.Origin{Path: "address of " + l.Interface})
		if !covers(a.listeners.HTTP, own) {
			r.URL = a.fallback.URL
		}
		if !covers(a.listeners.HTTPS, own) {
			r.SecureURL = a.fallback.SecureURL
		}
		return r
	}
	return Advertised{}
}

// covers reports whether a listener with an address of the config may be reached at the
// address own of this host.
func covers(listen string, own netip.Addr) bool {
	host, _, _ := net.SplitHostPort(listen)
	only, err := netip.ParseAddr(host)
	return err != nil || only.IsUnspecified() || only == own
}

// advertise returns an address with the URLs of the listeners.
func (a *addresses) advertise(address netip.Addr, from pools.Origin) Advertised {
	r := Advertised{Address: address, from: from}
	if !address.IsValid() {
		return r
	}
	if slices.ContainsFunc(a.local, func(l Local) bool { return l.Prefix.Addr() == address }) {
		r.ID = address
	}
	base := func(scheme, listen, usual string) string {
		_, port, err := net.SplitHostPort(listen)
		switch {
		case err != nil:
			return ""
		case port == usual:
			return scheme + hostOf(address)
		}
		return scheme + net.JoinHostPort(address.String(), port)
	}
	r.URL = base("http://", cmp.Or(a.listeners.HTTP, ":80"), "80")
	r.SecureURL = base("https://", a.listeners.HTTPS, "443")
	return r
}

// AdvertisedAt returns what a machine at an address is told about this server; for the
// zero Addr, what a machine of an unknown network is told.
func (f *Farm) AdvertisedAt(addr netip.Addr) *Advertised {
	a := &f.addresses
	if !addr.IsValid() {
		return &a.fallback
	}
	if i := f.linkSubnet(addr); i >= 0 {
		return &a.bySubnet[i]
	}
	if addr.Is6() && !addr.Is4In6() {
		return &a.fallback6
	}
	for i, l := range a.local {
		if l.Prefix.Contains(addr) {
			return &a.byLocal[i]
		}
	}
	return &a.fallback
}

// advertisedTo returns what a machine is told about this server: that of the subnet of
// its own addresses, else that of the network it asks from, else that of its lease.
func (f *Farm) advertisedTo(e *entry, q *Query, l *pools.Lease) *Advertised {
	switch {
	case e.subnetOf(q.IPv6) >= 0:
		return &f.addresses.bySubnet[e.subnetOf(q.IPv6)]
	case q.Link.IsValid():
		return f.AdvertisedAt(q.Link)
	case l.Address.IsValid():
		return f.AdvertisedAt(l.Address)
	case f.onlySubnet(q.IPv6) >= 0:
		return &f.addresses.bySubnet[f.onlySubnet(q.IPv6)]
	case q.IPv6:
		return &f.addresses.fallback6
	}
	return &f.addresses.fallback
}

// Locals returns the addresses of the interfaces that this server serves.
func (f *Farm) Locals() []Local { return f.addresses.local }

// IsLocal reports whether an address is one of this server: of an interface that it
// serves, or a boot address.
func (f *Farm) IsLocal(a netip.Addr) bool {
	has := func(all []Advertised) bool {
		return slices.ContainsFunc(all, func(x Advertised) bool { return x.Address == a })
	}
	return a.IsValid() && (a == f.Address() || has(f.addresses.bySubnet) ||
		slices.ContainsFunc(f.addresses.local, func(l Local) bool { return l.Prefix.Addr() == a }) ||
		slices.ContainsFunc(f.addresses.local6, func(l Local) bool { return l.Prefix.Addr() == a }))
}

// SecureURL returns the base URL of the node-facing HTTPS listener for machines of networks
// in which this server has no address, without a slash at its end; "" when there is none.
func (f *Farm) SecureURL() string { return f.addresses.fallback.SecureURL }

// Address returns the boot server for machines of networks in which this server has no
// address; an IPv6 address only where there is no IPv4. It is the zero Addr when the config names none and no interface has one.
func (f *Farm) Address() netip.Addr { return f.addresses.fallback.Address }

// BootAddress returns the boot address of subnet i of the config, and its origin.
func (f *Farm) BootAddress(i int) (netip.Addr, pools.Origin) {
	a := &f.addresses.bySubnet[i]
	return a.Address, a.from
}
