package nic

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

// dhcp6Servers are all DHCPv6 servers and relay agents on the link.
var dhcp6Servers = netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 13: 1, 15: 2})

// dhcp6 leases an IPv6 address for the network card by DHCPv6 (RFC 8415), in one try. The
// card needs a link-local address.
func (n *NIC) dhcp6(ctx context.Context) (Lease, error) {
	return n.withDHCP6(ctx, func(ctx context.Context, c *client6) (Lease, error) {
		offer, err := c.ask(ctx, n.message6(dhcpv6.MessageTypeSolicit, Lease{}), dhcpv6.MessageTypeAdvertise)
		if err != nil {
			return Lease{}, err
		}
		return c.ask(ctx, n.message6(dhcpv6.MessageTypeRequest, offer), dhcpv6.MessageTypeReply)
	})
}

// renew6 renews a lease, in one try.
func (n *NIC) renew6(ctx context.Context, l Lease) (Lease, error) {
	return n.withDHCP6(ctx, func(ctx context.Context, c *client6) (Lease, error) {
		return c.ask(ctx, n.message6(dhcpv6.MessageTypeRenew, l), dhcpv6.MessageTypeReply)
	})
}

// rebind6 renews a lease at any server, in one try.
func (n *NIC) rebind6(ctx context.Context, l Lease) (Lease, error) {
	l.server6 = nil
	return n.withDHCP6(ctx, func(ctx context.Context, c *client6) (Lease, error) {
		return c.ask(ctx, n.message6(dhcpv6.MessageTypeRebind, l), dhcpv6.MessageTypeReply)
	})
}

// decline6 tells the server that another machine has the address of a lease. It waits for
// no answer.
func (n *NIC) decline6(ctx context.Context, l Lease) {
	_, _ = n.withDHCP6(ctx, func(_ context.Context, c *client6) (Lease, error) {
		return Lease{}, c.send(n.message6(dhcpv6.MessageTypeDecline, l))
	})
}

// message6 returns a message about a lease, to the server that gave it, or to all servers.
// The DUID is made of the MAC: the same in each boot, and the one that systemd-networkd
// will send (see nodeconfig). The number of the address is the MAC's end.
func (n *NIC) message6(t dhcpv6.MessageType, l Lease) *dhcpv6.Message {
	m := &dhcpv6.Message{MessageType: t}
	_, _ = rand.Read(m.TransactionID[:]) // never an error
	m.AddOption(dhcpv6.OptClientID(n.duid()))
	if l.server6 != nil {
		m.AddOption(dhcpv6.OptServerID(l.server6))
	}
	m.AddOption(dhcpv6.OptElapsedTime(0))
	// Enterprise 0: drover has no number.
	m.AddOption(&dhcpv6.OptVendorClass{Data: [][]byte{[]byte("drover-init")}})
	m.AddOption(dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionDomainSearchList))
	if t == dhcpv6.MessageTypeInformationRequest {
		return m
	}
	ia := &dhcpv6.OptIANA{IaId: n.iaid()}
	if l.Address.IsValid() {
		ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: l.Address.Addr().AsSlice()})
	}
	m.AddOption(ia)
	return m
}

func (n *NIC) duid() dhcpv6.DUID { return n.hardware() }

func (n *NIC) iaid() [4]byte { return [4]byte(n.MAC[2:]) }

// client6 is a client for one exchange.
type client6 struct {
	nic  *NIC
	conn *net.UDPConn
}

// withDHCP6 opens a client for one exchange, and closes it.
func (n *NIC) withDHCP6(ctx context.Context, talk func(context.Context, *client6) (Lease, error)) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, dhcpLimit)
	defer cancel()
	own, err := n.waitLinkLocal(ctx)
	if err != nil {
		return Lease{}, err
	}
	conn, err := net.ListenUDP("udp6", &net.UDPAddr{IP: own.AsSlice(), Port: dhcpv6.DefaultClientPort, Zone: n.Name})
	if err != nil {
		return Lease{}, fmt.Errorf("dhcpv6 on %s: %w", n.Name, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	l, err := talk(ctx, &client6{n, conn})
	if err != nil && ctx.Err() != nil {
		return l, fmt.Errorf("no DHCPv6 server answers on %s", n.Name) // the socket was closed
	}
	return l, err
}

func (c *client6) send(m *dhcpv6.Message) error {
	to := netip.AddrPortFrom(dhcp6Servers.WithZone(c.nic.Name), dhcpv6.DefaultServerPort)
	if _, err := c.conn.WriteToUDPAddrPort(m.ToBytes(), to); err != nil {
		return fmt.Errorf("dhcpv6 on %s: %w", c.nic.Name, err)
	}
	return nil
}

// ask sends a message until a server answers it with an address: a server that has none may
// be one of several. A try is as long as one of DHCPv4.
func (c *client6) ask(ctx context.Context, m *dhcpv6.Message, want dhcpv6.MessageType) (Lease, error) {
	var refused error
	start, limit := time.Now(), dhcpTimeout
	for range dhcpTries {
		m.UpdateOption(dhcpv6.OptElapsedTime(time.Since(start)))
		if err := c.send(m); err != nil {
			return Lease{}, err
		}
		if err := c.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return Lease{}, err
		}
		for {
			reply, from, err := c.receive(m, want)
			if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
				if m.MessageType == dhcpv6.MessageTypeSolicit && c.nic.unmanaged() {
					return Lease{}, cmp.Or(refused, errUnmanaged)
				}
				break
			}
			if err != nil {
				return Lease{}, fmt.Errorf("dhcpv6 on %s: %w", c.nic.Name, err)
			}
			l, err := readLease6(reply, c.nic.iaid(), from)
			if err == nil || m.MessageType == dhcpv6.MessageTypeInformationRequest {
				return l, nil
			}
			refused = err
			if m.Options.ServerID() != nil {
				return l, refused // of the one server that was asked
			}
		}
		limit *= 2
	}
	return Lease{}, cmp.Or(refused, fmt.Errorf("no DHCPv6 server answers on %s", c.nic.Name))
}

// receive returns the next answer to a message, and its source.
func (c *client6) receive(m *dhcpv6.Message, want dhcpv6.MessageType) (*dhcpv6.Message, netip.Addr, error) {
	b := make([]byte, 2048)
	for {
		size, from, err := c.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return nil, netip.Addr{}, err
		}
		reply, err := dhcpv6.MessageFromBytes(b[:size])
		if err != nil || reply.MessageType != want || reply.TransactionID != m.TransactionID {
			continue
		}
		client, server := reply.Options.ClientID(), reply.Options.ServerID()
		if client == nil || !client.Equal(m.Options.ClientID()) || server == nil {
			continue
		}
		if asked := m.Options.ServerID(); asked != nil && !server.Equal(asked) {
			continue
		}
		return reply, from.Addr().WithZone(""), nil
	}
}

// readLease6 reads an ADVERTISE or REPLY. It returns an error without an address that a
// node can have, and ignores invalid optional values.
func readLease6(m *dhcpv6.Message, id [4]byte, from netip.Addr) (Lease, error) {
	l := Lease{Server: from, server6: m.Options.ServerID()}
	if s := m.Options.Status(); s != nil && s.StatusCode != iana.StatusSuccess {
		return l, refusal6(from, s)
	}
	for _, ia := range m.Options.IANA() {
		if ia.IaId != id {
			continue
		}
		if s := ia.Options.Status(); s != nil && s.StatusCode != iana.StatusSuccess {
			return l, refusal6(from, s)
		}
		for _, a := range ia.Options.Addresses() {
			if a.ValidLifetime == 0 || l.Address.IsValid() {
				continue // an address to stop using, or a second one
			}
			ip, _ := netip.AddrFromSlice(a.IPv6Addr)
			if !isHost6(ip) {
				return l, fmt.Errorf("DHCPv6 server %s offers address %s, which no node can have", from, a.IPv6Addr)
			}
			l.Address, l.For = netip.PrefixFrom(ip, 128), a.ValidLifetime
		}
	}
	if l.For >= infinite {
		l.For = 0
	}
	l.readNames(m)
	if !l.Address.IsValid() {
		return l, fmt.Errorf("DHCPv6 server %s offers no address", from)
	}
	return l, nil
}

// readNames reads the name servers and domains of a REPLY.
func (l *Lease) readNames(m *dhcpv6.Message) {
	for _, d := range m.Options.DNS() {
		if a, ok := netip.AddrFromSlice(d); ok && !a.IsUnspecified() && !a.IsMulticast() {
			l.DNS = append(l.DNS, a)
		}
	}
	if labels := m.Options.DomainSearchList(); labels != nil {
		l.Search = validDomains(labels.Labels)
	}
}

// isHost6 reports whether a machine can have an address from DHCPv6.
func isHost6(ip netip.Addr) bool {
	return ip.Is6() && !ip.Is4In6() && ip.IsGlobalUnicast() // without link-local ones, with fc00::/7
}

// refusal6 returns the error of a status. Its text is the server's.
func refusal6(from netip.Addr, s *dhcpv6.OptStatusCode) error {
	if s.StatusMessage == "" {
		return fmt.Errorf("DHCPv6 server %s gives no address: %s", from, s.StatusCode)
	}
	return fmt.Errorf("DHCPv6 server %s gives no address: %s, %q", from, s.StatusCode, s.StatusMessage)
}
