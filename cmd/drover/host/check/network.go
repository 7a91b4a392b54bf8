package check

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/routes"
	"drover/internal/ifaddr"
)

// vxlanHeaders are the bytes that VXLAN adds to a packet over IPv4.
const vxlanHeaders = 50

// link names an interface with its addresses.
type link struct {
	name     string
	mtu      int
	prefixes []netip.Prefix // of IPv4
}

// links returns the interfaces of the host.
func links() (all []link) {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range list {
		l := link{name: i.Name, mtu: i.MTU}
		addrs, _ := i.Addrs() // one that just went has none
		for _, p := range ifaddr.Prefixes(addrs) {
			if p.Addr().Is4() {
				l.prefixes = append(l.prefixes, p)
			}
		}
		all = append(all, l)
	}
	return all
}

// holder returns the interface that has an address.
func holder(a netip.Addr) (link, bool) {
	for _, l := range links() {
		for _, p := range l.prefixes {
			if p.Addr() == a {
				return l, true
			}
		}
	}
	return link{}, false
}

// addresses checks that the host has its address, and that no network of it is one of the
// cluster's.
func (h *Host) addresses() {
	if l, ok := holder(h.Facts.Address); ok {
		h.Add("address", cli.OK, fmt.Sprintf("%s is on %s", h.Facts.Address, l.name), "")
	} else {
		var have []string
		for _, l := range links() {
			for _, p := range l.prefixes {
				if !p.Addr().IsLoopback() && l.name != h.Facts.Interface() {
					have = append(have, p.Addr().String()+" ("+l.name+")")
				}
			}
		}
		h.Add("address", cli.Fault, fmt.Sprintf("the config has address %s, and this host has %s", h.Facts.Address, strings.Join(have, ", ")),
			"correct the address of the host in drover's config and install a new bundle, or give an interface that address")
	}
	apart := true
	for _, l := range links() {
		for _, p := range l.prefixes {
			if c, ok := h.overlap(p); ok && l.name != h.Facts.Interface() {
				apart = false
				h.Add("overlap", cli.Fault, fmt.Sprintf("the network %s of %s overlaps the cluster's %s", p, l.name, c), "renumber one of them; docker and libvirt can be given another network")
			}
		}
	}
	for _, r := range routes.Parse(h.read("proc/thread-self/net/route")) {
		c, ok := h.overlap(r.To)
		// The routes of flannel come before a wider one.
		if ok && r.Link != h.Facts.Interface() && r.To.Bits() >= c.Bits() && !h.connected(r) {
			apart = false
			h.Add("overlap", cli.Fault, fmt.Sprintf("the route to %s by %s takes packets for the cluster's %s", r.To, r.Link, c), fmt.Sprintf("ip route delete %s dev %s, and remove it from the config of the network", r.To, r.Link))
		}
	}
	if apart {
		h.Add("overlap", cli.OK, "no network of this host is one of the cluster's", "")
	}
}

// overlap returns the network of the cluster that a network overlaps.
func (h *Host) overlap(p netip.Prefix) (netip.Prefix, bool) {
	for _, c := range []netip.Prefix{h.Facts.Network.PodCIDR, h.Facts.Network.ServiceCIDR} {
		if p.Bits() > 0 && c.Overlaps(p) {
			return c, true
		}
	}
	return netip.Prefix{}, false
}

// connected reports whether a route is that of an address of its interface, which has a
// finding of its own.
func (h *Host) connected(r routes.Route) bool {
	for _, l := range links() {
		for _, p := range l.prefixes {
			if l.name == r.Link && p.Masked() == r.To {
				return true
			}
		}
	}
	return false
}

// source returns the address that packets to a leave with. Nothing is sent.
func source(a netip.AddrPort) (netip.Addr, error) {
	c, err := net.Dial("udp4", a.String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), nil
}

// routes checks the way of addresses of pods: it is flannel's interface.
func (h *Host) routes() {
	name := h.Facts.Interface()
	if h.strict(name) {
		h.Add("rp_filter", cli.Warning, "rp_filter of "+name+" is strict: packets of pods whose answers leave by another interface are dropped", fmt.Sprintf("sysctl -w net.ipv4.conf.%s.rp_filter=2", strings.ReplaceAll(name, ".", "/")))
	}
}

// link checks flannel's interface, which it reports to be there.
func (h *Host) link() bool {
	name := h.Facts.Interface()
	under, ok := holder(h.Facts.Address)
	for _, l := range links() {
		if l.name != name {
			continue
		}
		switch {
		case ok && l.mtu > under.mtu-vxlanHeaders:
			h.Add("mtu", cli.Fault, fmt.Sprintf("%s has MTU %d, and %s, below it, %d: its packets have %d bytes more", name, l.mtu, under.name, under.mtu, vxlanHeaders),
				fmt.Sprintf("ip link set %s mtu %d, or systemctl restart drover-flanneld-%s, which does it", name, under.mtu-vxlanHeaders, h.Facts.Cluster))
		case len(l.prefixes) == 0 || l.prefixes[0].Addr() != h.Facts.PodCIDR.Addr():
			h.Add("flannel", cli.Fault, fmt.Sprintf("%s has addresses %v, and not %s", name, l.prefixes, h.Facts.PodCIDR.Addr()), "systemctl restart drover-flanneld-"+h.Facts.Cluster)
		default:
			h.Add("flannel", cli.OK, fmt.Sprintf("%s has %s and MTU %d", name, h.Facts.PodCIDR.Addr(), l.mtu), "")
		}
		return true
	}
	h.Add("flannel", cli.Fault, "there is no interface "+name+": flanneld does not run, or could not make it", "journalctl -u drover-flanneld-"+h.Facts.Cluster)
	return false
}
