package nic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"drover/pools"
)

// errUnmanaged: a router says that there are no addresses by DHCPv6.
var errUnmanaged = errors.New("routers advertise that no DHCPv6 server gives addresses")

const (
	solicitTries = 5 // router solicitations
	solicitEvery = 2 * time.Second

	allRouters         = "ff02::2"
	routerSolicitation = 133 // RFC 4861, section 4.1
)

// slaac waits for the address that the kernel makes of a router's prefix and the MAC of the
// card (RFC 4862), and asks by DHCPv6 for the rest (RFC 8415, section 18.2.6). server is that
// of the boot, or the zero Addr.
func (n *NIC) slaac(ctx context.Context, server netip.Addr) (Lease, error) {
	path := filepath.Join("/proc/sys/net/ipv6/conf", n.Name, "autoconf")
	if err := os.WriteFile(path, []byte("1"), 0); err != nil { // Down restores what it was
		return Lease{}, err
	}
	own, err := n.waitLinkLocal(ctx)
	if err != nil {
		return Lease{}, err
	}
	l := Lease{}
	for range solicitTries {
		if err := n.solicitRouters(own); err != nil {
			n.say("router solicitation on %s: %v", n.Name, err)
		}
		var ip netip.Addr
		if ip, err = n.waitAddr(ctx, "autoconfigured", solicitEvery, n.isOwn); err == nil {
			l.Address = netip.PrefixFrom(n.source(ip, server), 64)
			break
		}
		if errors.Is(err, errDuplicate) || ctx.Err() != nil {
			return l, err
		}
	}
	if err != nil {
		return l, fmt.Errorf("no router on %s advertises a prefix for addresses", n.Name)
	}
	info, err := n.information(ctx)
	if err != nil {
		n.say("%v; going on without name servers", err)
	}
	l.Server, l.DNS, l.Search = info.Server, info.DNS, info.Search
	return l, nil
}

// isOwn reports whether an address is one that the kernel makes of the MAC.
func (n *NIC) isOwn(ip netip.Addr) bool {
	return isHost6(ip) && pools.EUI64(netip.PrefixFrom(ip, 64), n.MAC) == ip
}

// source returns the address of the card from which packets to the server come; first if it
// is not known yet. A router can advertise several prefixes.
func (n *NIC) source(first, server netip.Addr) netip.Addr {
	if !server.IsValid() {
		return first
	}
	routes, err := netlink.RouteGet(server.AsSlice())
	if err != nil || len(routes) == 0 {
		return first
	}
	if src, ok := netip.AddrFromSlice(routes[0].Src); ok && n.isOwn(src) {
		return src
	}
	return first
}

// solicitRouters asks the routers for an advertisement. The kernel has asked when the link
// came up, and may have had the answer while it was to make no address of it.
func (n *NIC) solicitRouters(own netip.Addr) error {
	conn, err := net.ListenPacket("ip6:ipv6-icmp", own.WithZone(n.Name).String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := ipv6.NewPacketConn(conn).SetMulticastHopLimit(255); err != nil { // or routers ignore it
		return err
	}
	const sourceAddress, units = 1, 1                                               // an option, and its length in 8 bytes
	packet := []byte{routerSolicitation, 0, 0, 0, 0, 0, 0, 0, sourceAddress, units} // the kernel writes the checksum
	_, err = conn.WriteTo(append(packet, n.MAC[:]...), &net.IPAddr{IP: net.ParseIP(allRouters), Zone: n.Name})
	return err
}

// information asks a DHCPv6 server for options, without an address.
func (n *NIC) information(ctx context.Context) (Lease, error) {
	return n.withDHCP6(ctx, func(ctx context.Context, c *client6) (Lease, error) {
		return c.ask(ctx, n.message6(dhcpv6.MessageTypeInformationRequest, Lease{}), dhcpv6.MessageTypeReply)
	})
}

// unmanaged reports whether router advertisements have come to the card, and the last one
// says that no DHCPv6 server gives addresses (flag M, RFC 4861, section 4.2).
func (n *NIC) unmanaged() bool {
	const received, managed = 0x20, 0x40 // IF_RA_RCVD and IF_RA_MANAGED of linux/if_inet6.h
	flags, err := flags6(n.link.Attrs().Index)
	return err == nil && flags&received != 0 && flags&managed == 0
}

// flags6 returns the flags that the kernel has of a card for IPv6.
func flags6(index int) (uint32, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	request.AddData(nl.NewIfInfomsg(unix.AF_INET6))
	links, err := whole(func() ([][]byte, error) { return request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK) })
	if err != nil {
		return 0, err
	}
	const protocolInfo, flags = unix.IFLA_PROTINFO, 1 // IFLA_INET6_FLAGS
	for _, b := range links {
		if int(nl.DeserializeIfInfomsg(b).Index) != index {
			continue
		}
		if v := attribute(attribute(b[unix.SizeofIfInfomsg:], protocolInfo), flags); len(v) == 4 {
			return binary.NativeEndian.Uint32(v), nil
		}
	}
	return 0, errors.New("the kernel has no IPv6 for it")
}

// attribute returns the value of a netlink attribute; nil if there is none.
func attribute(b []byte, kind uint16) []byte {
	all, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil
	}
	for _, a := range all {
		if a.Attr.Type&^unix.NLA_F_NESTED == kind {
			return a.Value
		}
	}
	return nil
}
