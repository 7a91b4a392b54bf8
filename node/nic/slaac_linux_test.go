package nic

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/server6"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv6"

	"drover/e2e/fixture"
	"drover/pools"
)

// stateless is a network whose router gives addresses by SLAAC alone, with a DHCPv6 server
// that answers INFORMATION-REQUESTs.
type stateless struct {
	mu   sync.Mutex
	seen []string // message types
}

func (s *stateless) handle(conn net.PacketConn, peer net.Addr, d dhcpv6.DHCPv6) {
	m, ok := d.(*dhcpv6.Message)
	if !ok {
		return
	}
	s.mu.Lock()
	if kind := m.MessageType.String(); !slices.Contains(s.seen, kind) {
		s.seen = append(s.seen, kind)
	}
	s.mu.Unlock()
	if m.MessageType != dhcpv6.MessageTypeInformationRequest || m.Options.OneIANA() != nil {
		return
	}
	reply := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeReply, TransactionID: m.TransactionID}
	reply.AddOption(dhcpv6.OptClientID(m.Options.ClientID()))
	reply.AddOption(dhcpv6.OptServerID(duid6))
	reply.AddOption(dhcpv6.OptDNS(net.ParseIP("fd00:79:7::53")))
	reply.AddOption(dhcpv6.OptDomainSearchList(labels6("example.org")))
	_, _ = conn.WriteTo(reply.ToBytes(), peer)
}

// advertise sends router advertisements with these flags until stop is called: the prefix
// fd00:79:7::/64 with flag A, and another one without.
func advertise(t *testing.T, flags byte) (stop func()) {
	t.Helper()
	packet := []byte{134, 0, 0, 0, 64, flags, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0} // the kernel writes the checksum
	for _, p := range []struct {
		flags byte
		first netip.Addr
	}{{0x80, netip.MustParseAddr("fd00:79:8::")}, {0xc0, netip.MustParseAddr("fd00:79:7::")}} {
		prefix := p.first.As16()
		packet = append(packet, 3, 4, 64, p.flags, 0, 0, 0x0e, 0x10, 0, 0, 0x0e, 0x10, 0, 0, 0, 0)
		packet = append(packet, prefix[:]...)
	}
	conn, err := net.ListenPacket("ip6:ipv6-icmp", "::")
	if err == nil {
		err = ipv6.NewPacketConn(conn).SetMulticastHopLimit(255)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			// Fails until the link has its link-local address.
			_, _ = conn.WriteTo(packet, &net.IPAddr{IP: net.ParseIP("ff02::1"), Zone: "server0"})
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() { close(done); wg.Wait(); conn.Close() }
}

// pair makes a pair of links: server0, which is up, and node0, which has a MAC. It reports
// whether it could.
func pair(t *testing.T, mac pools.MAC) bool {
	t.Helper()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "server0", MTU: 1500}, PeerName: "node0", PeerHardwareAddr: mac[:]}
	err := netlink.LinkAdd(veth)
	if err == nil {
		err = netlink.LinkSetUp(veth)
	}
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// TestSLAAC: where routers say that there is no DHCPv6 address, the node has the address
// that the kernel makes of the MAC, and name servers by an INFORMATION-REQUEST.
func TestSLAAC(t *testing.T) {
	t.Parallel()
	inNamespace(t, func(t *testing.T) {
		var said fixture.Log
		mac := pools.MAC{0x52, 0x54, 0, 0x79, 7, 2}
		if !pair(t, mac) {
			return
		}
		s := &stateless{}
		server, err := server6.NewServer("server0", &net.UDPAddr{Port: dhcpv6.DefaultServerPort}, s.handle)
		if err != nil {
			t.Error(err)
			return
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = server.Serve() }) // ends with an error when it is closed
		defer wg.Wait()
		defer server.Close()
		n, err := Find(t.Context(), mac, func() {}, said.Printf)
		if err != nil {
			t.Error(err)
			return
		}
		defer advertise(t, 0x40)() // O alone
		n.Server = "fd00:79:7::1"
		before := autoconf(t)
		if err := n.Up(t.Context()); err != nil {
			t.Error(err)
		}
		if err := n.Connect(t.Context()); err != nil {
			t.Errorf("connect: %v; it said\n%s", err, said.String())
			return
		}
		const want = "fd00:79:7:0:5054:ff:fe79:702"
		l := n.Lease
		if l.Address != netip.MustParsePrefix(want+"/64") || l.For != 0 || !slices.Equal(l.DNS, []netip.Addr{netip.MustParseAddr("fd00:79:7::53")}) || !slices.Equal(l.Search, []string{"example.org"}) {
			t.Errorf("got lease %+v", l)
		}
		routes, err := netlink.RouteGet(net.ParseIP("fd00:79:7::1"))
		if err != nil || len(routes) != 1 || !routes[0].Src.Equal(net.ParseIP(want)) {
			t.Errorf("route to the server: %v, %v", routes, err)
		}
		s.mu.Lock()
		seen := slices.Clone(s.seen)
		s.mu.Unlock()
		if !slices.Equal(seen, []string{"SOLICIT", "INFORMATION-REQUEST"}) {
			t.Errorf("the server got %q", seen)
		}
		fixture.WantText(t, "output", said.String(), "no DHCPv6 server gives addresses", "made of the MAC")
		if err := n.Down(); err != nil {
			t.Error(err)
		}
		if got := autoconf(t); got != before {
			t.Errorf("autoconf: got %s, want %s as before", got, before)
		}
	})
}

// TestNoRouter: without DHCPv6 and without a router the error says both.
func TestNoRouter(t *testing.T) {
	onLink6(t, func(t *testing.T, n *NIC, server *dhcp6Server, said *fixture.Log) {
		n.Server = "fd00:79:7::1"
		if err := n.Up(t.Context()); err != nil {
			t.Error(err)
		}
		own, err := n.waitLinkLocal(t.Context())
		if err != nil || !own.IsLinkLocalUnicast() {
			t.Errorf("link-local: %s, %v", own, err)
		}
		if _, err := n.slaac(t.Context(), netip.MustParseAddr("fd00:79:7::1")); err == nil || err.Error() != "no router on node0 advertises a prefix for addresses" {
			t.Errorf("got error %v; it said\n%s", err, said.String())
		}
		if err := n.Down(); err != nil {
			t.Error(err)
		}
	})
}
