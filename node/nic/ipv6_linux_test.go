package nic

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/server6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/insomniacslk/dhcp/rfc1035label"
	"github.com/vishvananda/netlink"

	"drover/e2e/fixture"
	"drover/pools"
)

func labels6(names ...string) *rfc1035label.Labels { return &rfc1035label.Labels{Labels: names} }

// dhcp6Server leases fd00:79:7::11, and records the requests. Before each ADVERTISE comes
// one of a server that has no address, and answers of other transactions.
type dhcp6Server struct {
	mu   sync.Mutex
	seen []string // message types with the addresses that they name
}

func (s *dhcp6Server) handle(conn net.PacketConn, peer net.Addr, d dhcpv6.DHCPv6) {
	m, ok := d.(*dhcpv6.Message)
	if !ok || m.Options.OneIANA() == nil {
		return
	}
	packet := m.MessageType.String()
	if a := m.Options.OneIANA().Options.OneAddress(); a != nil {
		packet += " " + a.IPv6Addr.String()
	}
	s.mu.Lock()
	if !slices.Contains(s.seen, packet) { // a repeated packet: this machine is busy
		s.seen = append(s.seen, packet)
	}
	s.mu.Unlock()
	ia := &dhcpv6.OptIANA{IaId: m.Options.OneIANA().IaId}
	answer := func(t dhcpv6.MessageType, id byte, option dhcpv6.Option, mods ...dhcpv6.Modifier) {
		ia.Options.Options = dhcpv6.Options{option}
		reply := &dhcpv6.Message{MessageType: t, TransactionID: m.TransactionID}
		reply.AddOption(dhcpv6.OptClientID(m.Options.ClientID()))
		reply.AddOption(dhcpv6.OptServerID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, id}}))
		reply.AddOption(ia)
		for _, mod := range mods {
			mod(reply)
		}
		_, _ = conn.WriteTo(reply.ToBytes(), peer)
	}
	address := addr6("fd00:79:7::11", 5*time.Minute)
	switch m.MessageType {
	case dhcpv6.MessageTypeSolicit:
		answer(dhcpv6.MessageTypeReply, 3, address)
		answer(dhcpv6.MessageTypeAdvertise, 3, address, func(d dhcpv6.DHCPv6) { d.(*dhcpv6.Message).TransactionID[0]++ })
		answer(dhcpv6.MessageTypeAdvertise, 3, address, dhcpv6.WithClientID(duid6))
		answer(dhcpv6.MessageTypeAdvertise, 2, status6(iana.StatusNoAddrsAvail, ""))
		answer(dhcpv6.MessageTypeAdvertise, 1, address)
	case dhcpv6.MessageTypeRebind: // of a machine whose server is gone
		answer(dhcpv6.MessageTypeReply, 2, status6(iana.StatusNoBinding, ""))
		answer(dhcpv6.MessageTypeReply, 4, address)
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew:
		if m.Options.ServerID().Equal(goneServer) {
			answer(dhcpv6.MessageTypeReply, 9, status6(iana.StatusNoBinding, ""))
			return
		}
		answer(dhcpv6.MessageTypeReply, 3, addr6("fd00:79:7::66", time.Hour))
		answer(dhcpv6.MessageTypeReply, 1, address)
	}
}

// goneServer is a server that has lost the lease.
var goneServer = &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}

// serveDHCP6 makes a pair of links, serves DHCPv6 on one, and returns the card of the other.
func serveDHCP6(t *testing.T, s *dhcp6Server, said *fixture.Log) (*NIC, func()) {
	t.Helper()
	mac := pools.MAC{0x52, 0x54, 0, 0x79, 7, 1}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "server0", MTU: 1500}, PeerName: "node0", PeerHardwareAddr: mac[:]}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		t.Fatal(err)
	}
	n, err := Find(t.Context(), mac, func() {}, said.Printf)
	if err != nil {
		t.Fatal(err)
	}
	server, err := server6.NewServer("server0", &net.UDPAddr{Port: dhcpv6.DefaultServerPort}, s.handle)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve() }) // ends with an error when it is closed
	return n, func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

// onLink6 runs a test with a card on a link with such a server.
func onLink6(t *testing.T, test func(t *testing.T, n *NIC, s *dhcp6Server, said *fixture.Log)) {
	t.Parallel()
	inNamespace(t, func(t *testing.T) {
		var said fixture.Log
		server := &dhcp6Server{}
		n, stop := serveDHCP6(t, server, &said)
		defer stop()
		test(t, n, server, &said)
	})
}

// autoconf returns the card's setting, which a boot over IPv6 changes.
func autoconf(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/net/ipv6/conf/node0/autoconf")
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(b))
}

// TestConnect6: a server with an IPv6 address, on a link without routers.
func TestConnect6(t *testing.T) {
	onLink6(t, func(t *testing.T, n *NIC, server *dhcp6Server, said *fixture.Log) {
		n.Server = "fd00:79:7::1"
		before := autoconf(t)
		if err := n.Up(t.Context()); err != nil {
			t.Error(err)
		}
		if got := autoconf(t); got != "0" {
			t.Errorf("autoconf is %s: the server would see another address", got)
		}
		if err := n.Connect(t.Context()); err != nil {
			t.Errorf("connect: %v", err)
			return
		}
		if l := n.Lease; l.Address != netip.MustParsePrefix("fd00:79:7::11/128") || l.For != 5*time.Minute {
			t.Errorf("got lease %+v", l)
		}
		routes, err := netlink.RouteGet(net.ParseIP("fd00:79:7::1"))
		if err != nil || len(routes) != 1 || routes[0].LinkIndex != n.link.Attrs().Index || !routes[0].Src.Equal(net.ParseIP("fd00:79:7::11")) {
			t.Errorf("route to the server: %v, %v", routes, err)
		}
		if again, err := n.Renew(t.Context(), n.Lease); err != nil || again.Address != n.Lease.Address {
			t.Errorf("renew: got %v, %v", again.Address, err)
		}
		lost := n.Lease
		lost.server6 = goneServer
		if again, err := n.prolong(t.Context(), lost, 2*time.Minute); err == nil {
			t.Errorf("a lease that its server does not renew: got %+v before the time to ask others", again)
		}
		again, err := n.prolong(t.Context(), lost, 30*time.Second)
		if err != nil || again.Address != n.Lease.Address || again.server6.Equal(goneServer) {
			t.Errorf("rebind: got %+v, %v", again, err)
		}
		if err := n.Down(); err != nil {
			t.Error(err)
		}
		if got := autoconf(t); got != before {
			t.Errorf("autoconf: got %s, want %s as before", got, before)
		}
		server.mu.Lock()
		defer server.mu.Unlock()
		if want := []string{"SOLICIT", "REQUEST fd00:79:7::11", "RENEW fd00:79:7::11", "REBIND fd00:79:7::11"}; !slices.Equal(server.seen, want) {
			t.Errorf("the server got %q, want %q", server.seen, want)
		}
		fixture.WantText(t, "output", said.String(), "no router advertisement on node0 brings a route to fd00:79:7::1")
	})
}

// TestDuplicate6: another machine has the leased address. The server is known by its name,
// and no DHCPv4 server answers, so that DHCPv6 is tried.
func TestDuplicate6(t *testing.T) {
	onLink6(t, func(t *testing.T, n *NIC, server *dhcp6Server, _ *fixture.Log) {
		other, err := netlink.LinkByName("server0")
		if err != nil {
			t.Error(err)
			return
		}
		taken := &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("fd00:79:7::11/64")), Flags: 0x02} // IFA_F_NODAD
		if err := netlink.AddrAdd(other, taken); err != nil {
			t.Error(err)
		}
		n.Server = "boot.example.org"
		if err := n.Up(t.Context()); err != nil {
			t.Error(err)
		}
		err = n.Connect(t.Context())
		const want = "no DHCP server answers on node0; node0 cannot use IPv6 address fd00:79:7::11: another machine on the wire has it"
		if err == nil || err.Error() != want {
			t.Errorf("got error %v, want %q", err, want)
		}
		fixture.Eventually(t, "DECLINE", func() bool {
			server.mu.Lock()
			defer server.mu.Unlock()
			return slices.Contains(server.seen, "DECLINE fd00:79:7::11")
		})
		if err := n.Down(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoIPv6 asks for nothing that a server with an IPv4 address does not need.
func TestNoIPv6(t *testing.T) {
	for server, want := range map[string]bool{"10.28.0.2": false, "": false, "fd00::1": true, "boot.example.org": true} {
		if got := (&NIC{Server: server}).wantsIPv6(); got != want {
			t.Errorf("%q: got %t, want %t", server, got, want)
		}
	}
}
