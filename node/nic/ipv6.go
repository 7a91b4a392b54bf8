package nic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"drover/internal/wait"
)

const (
	settleWait = 10 * time.Second // until the kernel has checked an address (RFC 4862)
	routeWait  = 10 * time.Second // until a router advertisement has come; the kernel asks after 0, 4 and 8 s
)

// settings6 are the kernel's settings of the card while it has an address from DHCPv6.
// The kernel takes routes from router advertisements, but no addresses: the server knows
// the node by the leased address, and connections must come from it. Where it makes an
// address all the same (slaac.go), it makes it of the MAC, by which the server knows it.
var settings6 = []struct{ name, value string }{
	{"disable_ipv6", "0"},
	{"autoconf", "0"},
	{"accept_ra", "2"},
	{"addr_gen_mode", "0"},
	{"use_tempaddr", "0"},
}

// Connect leases an address and configures it, in one try: by DHCPv6 for a server with an
// IPv6 address, otherwise by DHCPv4. If the server has a name, DHCPv6 is tried after
// DHCPv4.
func (n *NIC) Connect(ctx context.Context) error {
	server, notAddress := netip.ParseAddr(n.Server)
	if server.Is6() {
		return n.connect6(ctx, server)
	}
	l, err := n.dhcp(ctx)
	if err == nil {
		return n.configure(l)
	}
	if notAddress != nil && ctx.Err() == nil {
		err6 := n.connect6(ctx, netip.Addr{})
		if err6 == nil {
			return nil
		}
		err = fmt.Errorf("%w; %w", err, err6)
	}
	return err
}

// wantsIPv6 reports whether the node may need an IPv6 address.
func (n *NIC) wantsIPv6() bool {
	server, err := netip.ParseAddr(n.Server)
	return n.Server != "" && (err != nil || server.Is6())
}

// connect6 gets an IPv6 address: by DHCPv6, or where no server gives one, by a router's
// advertisement.
func (n *NIC) connect6(ctx context.Context, server netip.Addr) error {
	l, err := n.dhcp6(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		auto, failed := n.slaac(ctx, server)
		if failed != nil {
			return fmt.Errorf("%w; %w", err, failed)
		}
		n.say("%v: using %s, which is made of the MAC", err, auto.Address)
		if n.Lease = auto; !server.IsValid() {
			return nil
		}
		return n.waitRoute(ctx, server)
	}
	if err := n.configure(l); err != nil {
		return err
	}
	ip := l.Address.Addr()
	_, err = n.waitAddr(ctx, ip.String(), settleWait, func(a netip.Addr) bool { return a == ip })
	if errors.Is(err, errDuplicate) {
		n.decline6(ctx, l)
		_ = netlink.AddrDel(n.link, &netlink.Addr{IPNet: ipNet(l.Address)}) // the kernel does not use it
	}
	if err != nil || !server.IsValid() {
		return err
	}
	return n.waitRoute(ctx, server)
}

// set6 sets the card's settings of IPv6, and remembers those that it had.
func (n *NIC) set6() {
	for _, s := range settings6 {
		if err := n.set(filepath.Join("ipv6/conf", n.Name, s.name), s.value); err != nil {
			n.say("%v", err) // a kernel without IPv6 has no such file: waitLinkLocal says so
		}
	}
}

// waitLinkLocal waits for the link-local address of the card.
func (n *NIC) waitLinkLocal(ctx context.Context) (netip.Addr, error) {
	return n.waitAddr(ctx, "link-local", settleWait, netip.Addr.IsLinkLocalUnicast)
}

// errDuplicate: duplicate address detection found an address in use.
var errDuplicate = errors.New("another machine on the wire has it")

// waitAddr waits until the kernel has found an address of the card to be unique.
func (n *NIC) waitAddr(ctx context.Context, what string, limit time.Duration, is func(netip.Addr) bool) (netip.Addr, error) {
	for start := time.Now(); ; {
		addrs, err := whole(func() ([]netlink.Addr, error) { return netlink.AddrList(n.link, netlink.FAMILY_V6) })
		if err != nil {
			return netip.Addr{}, fmt.Errorf("addresses of %s: %w", n.Name, err)
		}
		for _, a := range addrs {
			ip, _ := netip.AddrFromSlice(a.IP)
			switch {
			case !is(ip):
			case a.Flags&unix.IFA_F_DADFAILED != 0:
				return ip, fmt.Errorf("%s cannot use IPv6 address %s: %w", n.Name, ip, errDuplicate)
			case a.Flags&unix.IFA_F_TENTATIVE == 0:
				return ip, nil
			}
		}
		if time.Since(start) > limit || wait.Sleep(ctx, poll) != nil {
			return netip.Addr{}, fmt.Errorf("%s has no usable %s IPv6 address after %.0f s: has it a carrier, and the kernel IPv6?", n.Name, what, time.Since(start).Seconds())
		}
	}
}

// waitRoute waits for a route to the server, which a router advertisement brings. Without
// one it takes the server to be on the link, as its DHCPv6 answer suggests.
func (n *NIC) waitRoute(ctx context.Context, server netip.Addr) error {
	index := n.link.Attrs().Index
	for start := time.Now(); time.Since(start) < routeWait; {
		routes, err := netlink.RouteGet(server.AsSlice())
		if err == nil && len(routes) > 0 && routes[0].LinkIndex == index {
			return nil
		}
		if wait.Sleep(ctx, poll) != nil {
			return fmt.Errorf("no route to %s", server)
		}
	}
	n.say("no router advertisement on %s brings a route to %s; trying it on the link", n.Name, server)
	host := netip.PrefixFrom(server, server.BitLen())
	if err := netlink.RouteReplace(&netlink.Route{LinkIndex: index, Dst: ipNet(host), Scope: netlink.SCOPE_LINK}); err != nil {
		return fmt.Errorf("route %s on %s: %w", host, n.Name, err)
	}
	return nil
}
