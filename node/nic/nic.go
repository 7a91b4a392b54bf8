// Package nic finds the network card that the node booted from, leases an address for
// it by DHCPv4 or DHCPv6, and leaves the card as it was found.
//
//	n, err := nic.Find(ctx, mac, coldplug, log)
//	n.Server = host
//	err = n.Up(ctx)
//	err = n.Connect(ctx)
//	go n.KeepLease(ctx)
//	err = n.Down()
//
// It knows nothing of the boot that needs the network.
package nic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"drover/internal/wait"
	"drover/node/nodeconfig"
	"drover/pools"
)

// Time limits of the network card and its carrier.
const (
	nicWait     = 60 * time.Second // slow switches of a chassis, USB cards
	carrierWait = 30 * time.Second // then DHCP is tried anyway: some drivers report no carrier
	poll        = 100 * time.Millisecond
)

// NIC is the boot network card and its address.
type NIC struct {
	Name    string
	MAC     pools.MAC
	Server  string // address or name of the server, set before Up; it decides between DHCPv4 and DHCPv6
	Lease   Lease
	link    netlink.Link
	restore []func() error // the settings of IPv6 and ARP, and the other cards
	say     func(format string, args ...any)
}

// Find waits for the network card with a MAC. At intervals it calls plug, which loads the
// modules of devices that appear late.
func Find(ctx context.Context, mac pools.MAC, plug func(), say func(string, ...any)) (*NIC, error) {
	start := time.Now()
	for n := 1; ; n++ {
		links, err := whole(netlink.LinkList)
		if err != nil {
			return nil, fmt.Errorf("list network cards: %w", err)
		}
		if l := linkWithMAC(links, mac); l != nil {
			return &NIC{Name: l.Attrs().Name, MAC: mac, link: l, say: say}, nil
		}
		waited := time.Since(start)
		if waited > nicWait {
			return nil, fmt.Errorf("no network card has MAC %s (there are: %s); is its driver in the initrd?", mac, describeLinks(links))
		}
		if n%50 == 0 { // every 5 s
			say("waiting for the network card with MAC %s, for %.0f s more (there are: %s)",
				mac, (nicWait - waited).Seconds(), describeLinks(links))
		}
		if n%10 == 0 {
			plug()
		}
		if err := wait.Sleep(ctx, poll); err != nil {
			return nil, fmt.Errorf("no network card has MAC %s", mac)
		}
	}
}

// whole returns a list that the kernel did not change while it was read, as it does when a
// router advertisement arrives. It tries ten times.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range 10 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

func linkWithMAC(links []netlink.Link, mac pools.MAC) netlink.Link {
	for _, l := range links {
		if macOf(l.Attrs().HardwareAddr) == mac && !mac.IsZero() {
			return l
		}
	}
	return nil
}

func describeLinks(links []netlink.Link) string {
	var all []string
	for _, l := range links {
		if a := l.Attrs(); a.Flags&net.FlagLoopback == 0 {
			all = append(all, a.Name+" "+a.HardwareAddr.String())
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// Up brings the loopback and the network card up, and waits for a carrier.
func (n *NIC) Up(ctx context.Context) error {
	if lo, err := netlink.LinkByName("lo"); err == nil {
		if err := netlink.LinkSetUp(lo); err != nil {
			n.say("lo: %v", err) // the boot does not need it
		}
	}
	if n.wantsIPv6() {
		n.set6()
	}
	if err := netlink.LinkSetUp(n.link); err != nil {
		return fmt.Errorf("set %s up: %w", n.Name, err)
	}
	start := time.Now()
	for i := 1; ; i++ {
		l, err := netlink.LinkByIndex(n.link.Attrs().Index)
		if err != nil {
			return fmt.Errorf("%s went away: %w", n.Name, err)
		}
		if l.Attrs().RawFlags&unix.IFF_LOWER_UP != 0 {
			return nil
		}
		if time.Since(start) > carrierWait {
			n.say("%s still has no carrier after %.0f s; trying DHCP all the same", n.Name, carrierWait.Seconds())
			return nil
		}
		if i%50 == 0 {
			n.say("%s has no carrier: is its cable in, is the switch port up? Waiting", n.Name)
		}
		if err := wait.Sleep(ctx, poll); err != nil {
			return fmt.Errorf("%s has no carrier", n.Name)
		}
	}
}

// configure sets address, routes and MTU of the network card from a lease.
func (n *NIC) configure(l Lease) error {
	if l.MTU > 0 {
		if err := netlink.LinkSetMTU(n.link, l.MTU); err != nil {
			n.say("%s: MTU %d: %v; keeping %d", n.Name, l.MTU, err, n.link.Attrs().MTU)
		}
	}
	addr := &netlink.Addr{IPNet: ipNet(l.Address)}
	if err := netlink.AddrReplace(n.link, addr); err != nil {
		return fmt.Errorf("address %s on %s: %w", l.Address, n.Name, err)
	}
	for _, r := range l.Routes {
		route := &netlink.Route{LinkIndex: n.link.Attrs().Index, Dst: ipNet(r.To)}
		if r.Via.IsValid() {
			route.Gw = r.Via.AsSlice()
			// A router may be outside of the subnet, as in clouds and with /32 leases.
			route.SetFlag(netlink.FLAG_ONLINK)
		} else {
			route.Scope = netlink.SCOPE_LINK
		}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("route %s via %s: %w", r.To, r.Via, err)
		}
	}
	n.Lease = l
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Down restores the network card to the state in which it was found. If it is up or has
// an address when systemd-networkd starts, networkd does no DHCP, and it takes two
// minutes until the machine counts as online.
func (n *NIC) Down() error {
	var errs []error
	addrs, err := whole(func() ([]netlink.Addr, error) { return netlink.AddrList(n.link, netlink.FAMILY_ALL) })
	errs = append(errs, err)
	for _, a := range addrs {
		errs = append(errs, nodeconfig.Ignore(netlink.AddrDel(n.link, &a), unix.EADDRNOTAVAIL))
	}
	routes, err := whole(func() ([]netlink.Route, error) { return netlink.RouteList(n.link, netlink.FAMILY_ALL) })
	errs = append(errs, err)
	for _, r := range routes {
		errs = append(errs, nodeconfig.Ignore(netlink.RouteDel(&r), unix.ESRCH))
	}
	if n.Lease.MTU > 0 {
		errs = append(errs, netlink.LinkSetMTU(n.link, n.link.Attrs().MTU)) // of when it was found
	}
	errs = append(errs, netlink.LinkSetDown(n.link))
	for _, restore := range n.restore {
		errs = append(errs, restore())
	}
	return errors.Join(errs...)
}
