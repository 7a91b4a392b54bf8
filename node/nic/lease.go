package nic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/internal/wait"
	"drover/node/nodeconfig"
)

// Lease is an address lease with the options that the node uses.
type Lease struct {
	Address netip.Prefix
	Server  netip.Addr
	Routes  []Route
	DNS     []netip.Addr
	Search  []string      // domains, the node's own first
	MTU     int           // 0: the card's
	For     time.Duration // 0: for ever
	packets *nclient4.Lease
	server6 dhcpv6.DUID // of DHCPv6
}

// Route is a destination and its router. Without a router the destination is on the
// link.
type Route struct {
	To  netip.Prefix
	Via netip.Addr
}

// A try sends three DISCOVERs, after 0, 2 and 6 s, and ends after 14 s.
const (
	dhcpTimeout = 2 * time.Second
	dhcpTries   = 3
	dhcpLimit   = 30 * time.Second                     // of DISCOVER and REQUEST, with all their tries
	infinite    = time.Duration(1<<32-1) * time.Second // RFC 2131, section 3.3; RFC 8415, section 7.7
)

// DHCPOptions returns the options of each request. The client identifier is the one that
// iPXE sent and that systemd-networkd will send (type 1, then the MAC), so that a
// server that leases by identifier sees one client.
func DHCPOptions(mac net.HardwareAddr) []dhcpv4.Modifier {
	return []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("drover-init")),
		dhcpv4.WithOption(dhcpv4.OptClientIdentifier(append([]byte{1}, mac...))),
		dhcpv4.WithRequestedOptions(
			dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer,
			dhcpv4.OptionDomainName, dhcpv4.OptionInterfaceMTU, dhcpv4.OptionDNSDomainSearchList,
			dhcpv4.OptionClasslessStaticRoute),
	}
}

// dhcp leases an address for the network card, in one try.
func (n *NIC) dhcp(ctx context.Context) (Lease, error) {
	return n.withDHCP(ctx, func(ctx context.Context, c *nclient4.Client) (*nclient4.Lease, error) {
		return c.Request(ctx, n.options()...)
	})
}

// Renew renews the lease, in one try.
func (n *NIC) Renew(ctx context.Context, l Lease) (Lease, error) {
	if l.Address.Addr().Is6() {
		return n.renew6(ctx, l)
	}
	return n.withDHCP(ctx, func(ctx context.Context, c *nclient4.Client) (*nclient4.Lease, error) {
		return c.Renew(ctx, l.packets, n.options()...)
	})
}

// options returns the options of each request.
func (n *NIC) options() []dhcpv4.Modifier {
	if n.isInfiniBand() {
		return n.infiniBandOptions()
	}
	return DHCPOptions(n.MAC[:])
}

func (n *NIC) client(ctx context.Context) (*nclient4.Client, error) {
	if n.isInfiniBand() {
		return n.infiniBandClient(ctx)
	}
	return nclient4.New(n.Name, nclient4.WithTimeout(dhcpTimeout), nclient4.WithRetry(dhcpTries))
}

// withDHCP opens a client for one exchange, and closes it: its raw socket receives all
// packets, those of the image's transfer too.
func (n *NIC) withDHCP(ctx context.Context, talk func(context.Context, *nclient4.Client) (*nclient4.Lease, error)) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, dhcpLimit)
	defer cancel()
	c, err := n.client(ctx)
	if err != nil {
		return Lease{}, fmt.Errorf("dhcp on %s: %w", n.Name, err)
	}
	defer func() { _ = c.Close() }() // only a listening socket
	packets, err := talk(ctx, c)
	if errors.Is(err, nclient4.ErrNoResponse) {
		return Lease{}, fmt.Errorf("no DHCP server answers on %s", n.Name)
	}
	if err != nil {
		return Lease{}, fmt.Errorf("dhcp on %s: %w", n.Name, err)
	}
	l, err := readLease(packets.ACK)
	l.packets = packets
	return l, err
}

// KeepLease renews the lease at half its time, until ctx ends. A node whose image
// transfer takes longer than its lease would otherwise lose its address, and with it the
// right to fetch its config.
func (n *NIC) KeepLease(ctx context.Context) {
	l := n.Lease
	for l.For > 0 {
		ends := time.Now().Add(l.For)
		for delay := l.For / 2; ; delay = time.Until(ends) / 2 {
			if wait.Sleep(ctx, max(delay, 10*time.Second)) != nil {
				return
			}
			next, err := n.prolong(ctx, l, time.Until(ends))
			if err == nil && next.Address != l.Address {
				err = fmt.Errorf("server now offers %s", next.Address)
			}
			if err == nil {
				l = next
				break
			}
			if ctx.Err() != nil {
				return
			}
			n.say("error: lease of %s not prolonged, it ends in %.0f s: %v", l.Address, time.Until(ends).Seconds(), err)
		}
	}
}

// prolong renews a lease that ends after left, in one try. Near its end any server may renew
// one of IPv6: the server that gave it may be gone (REBIND, RFC 8415, section 18.2.5).
func (n *NIC) prolong(ctx context.Context, l Lease, left time.Duration) (Lease, error) {
	next, err := n.Renew(ctx, l)
	if err != nil && ctx.Err() == nil && left < l.For/5 && l.Address.Addr().Is6() {
		return n.rebind6(ctx, l)
	}
	return next, err
}

// readLease reads an ACK. It returns an error for values with which a node cannot boot,
// and ignores invalid optional values.
func readLease(ack *dhcpv4.DHCPv4) (Lease, error) {
	var l Lease
	l.Server, _ = netip.AddrFromSlice(ack.ServerIdentifier().To4())
	ip, ok := netip.AddrFromSlice(ack.YourIPAddr.To4())
	if !ok || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return l, fmt.Errorf("DHCP server %s offers address %s, which no node can have", l.Server, ack.YourIPAddr)
	}
	bits, size := ack.SubnetMask().Size()
	if size != 32 || bits == 0 {
		return l, fmt.Errorf("DHCP server %s offers %s without a valid subnet mask", l.Server, ip)
	}
	l.Address = netip.PrefixFrom(ip, bits)
	l.Routes = readRoutes(ack)
	for _, d := range ack.DNS() {
		if a, ok := netip.AddrFromSlice(d.To4()); ok && !a.IsUnspecified() {
			l.DNS = append(l.DNS, a)
		}
	}
	l.Search = readSearch(ack)
	// Every host accepts 576 bytes (RFC 791).
	if mtu, err := dhcpv4.GetUint16(dhcpv4.OptionInterfaceMTU, ack.Options); err == nil && mtu >= 576 {
		l.MTU = int(mtu)
	}
	if l.For = ack.IPAddressLeaseTime(0); l.For >= infinite {
		l.For = 0
	}
	return l, nil
}

// readRoutes returns the classless static routes, or without them the router option
// (RFC 3442).
func readRoutes(ack *dhcpv4.DHCPv4) []Route {
	var routes []Route
	for _, r := range ack.ClasslessStaticRoute() {
		to, ok := netip.AddrFromSlice(r.Dest.IP.To4())
		bits, size := r.Dest.Mask.Size()
		if !ok || size != 32 {
			continue
		}
		via, _ := netip.AddrFromSlice(r.Router.To4())
		if via.IsUnspecified() {
			via = netip.Addr{}
		}
		routes = append(routes, Route{To: netip.PrefixFrom(to, bits).Masked(), Via: via})
	}
	if len(routes) > 0 {
		return routes
	}
	for _, r := range ack.Router() {
		if via, ok := netip.AddrFromSlice(r.To4()); ok && !via.IsUnspecified() {
			return []Route{{To: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Via: via}}
		}
	}
	return nil
}

// readSearch returns the domain name, then the others of the search list.
func readSearch(ack *dhcpv4.DHCPv4) []string {
	names := []string{ack.DomainName()}
	if labels := ack.DomainSearch(); labels != nil {
		for _, name := range labels.Labels {
			if name != ack.DomainName() {
				names = append(names, name)
			}
		}
	}
	return validDomains(names)
}

// validDomains returns the valid names, without the dots at their ends.
func validDomains(names []string) []string {
	var valid []string
	for _, name := range names {
		if name = strings.TrimSuffix(name, "."); nodeconfig.CheckDomain(name) == nil {
			valid = append(valid, name)
		}
	}
	return valid
}

// ResolvConf returns the lease as a resolv.conf(5); empty if it has no DNS server.
func (l Lease) ResolvConf() string {
	if len(l.DNS) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# from DHCP, by drover-init\n")
	for _, d := range l.DNS {
		fmt.Fprintf(&b, "nameserver %s\n", d)
	}
	if len(l.Search) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(l.Search, " "))
	}
	return b.String()
}
