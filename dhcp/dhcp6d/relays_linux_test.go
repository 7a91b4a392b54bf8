package dhcp6d_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
)

// agent is a router on the wire that relays for the network of m3.
const agentMAC, agentAddr, farAddr = "52:54:00:aa:00:01", "fd00:28::fe", "fd00:29::1"

func parseMAC(t *testing.T, text string) pools.MAC {
	t.Helper()
	m, err := pools.ParseMAC(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// forwards sends a relayed SOLICIT of m3 from an address of a host until the server has decided
// on it, and returns the exchange.
func (r *rack) forwards(n netns.Namespace, from string) (got dhcp.Exchange) {
	r.Helper()
	mac := parseMAC(r.T, m3)
	solicit, err := dhcpv6.NewSolicit(mac[:])
	if err != nil {
		r.Fatal(err)
	}
	packet, err := dhcpv6.EncapsulateRelay(solicit, dhcpv6.MessageTypeRelayForward, net.ParseIP(farAddr), net.ParseIP("fe80::1"))
	if err != nil {
		r.Fatal(err)
	}
	packet.AddOption(dhcpv6.OptClientLinkLayerAddress(iana.HWTypeEthernet, mac[:]))
	var conn *net.UDPConn
	n.In(r, func() (err error) {
		conn, err = net.ListenUDP("udp6", &net.UDPAddr{IP: net.ParseIP(from), Port: dhcpv6.DefaultServerPort})
		return err
	})
	defer conn.Close()
	r.mu.Lock()
	r.seen = nil
	r.mu.Unlock()
	fixture.Eventually(r, "an exchange by way of "+from, func() bool {
		if _, err := conn.WriteTo(packet.ToBytes(), &net.UDPAddr{IP: net.ParseIP("fd00:28::2"), Port: dhcpv6.DefaultServerPort}); err != nil {
			r.Log(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // a client may not ask too often
		_, _ = conn.Read(make([]byte, 2000))
		r.mu.Lock()
		defer r.mu.Unlock()
		i := slices.IndexFunc(r.seen, func(x dhcp.Exchange) bool { return x.MAC == mac && x.Decision != dhcp.TooOften })
		if i >= 0 {
			got = r.seen[i]
		}
		return i >= 0
	})
	return got
}

// router makes a host on the wire with addresses, and the server's route back.
func (r *rack) router(addresses ...string) netns.Namespace {
	r.Helper()
	n := r.host("agent", agentMAC)
	for _, a := range addresses {
		n.IP(r, "addr", "add", a+"/64", "dev", "cli", "nodad")
	}
	r.net.IP(r, "route", "add", "fd00:29::/64", "via", agentAddr)
	return n
}

// TestLeasedRouter: a stranger leases an address in the name of a router's MAC. The router does not
// have that address: its packets count as before. A machine that has it does not forward.
func TestLeasedRouter(t *testing.T) {
	const leased = "fd00:28::100"
	for _, tt := range []struct {
		name, short string
		addresses   []string // of the router
		from        string
		want        dhcp.Decision
	}{
		{"from its address on the wire", "w", []string{agentAddr}, agentAddr, dhcp.Offered},
		{"from its address in the rack", "f", []string{agentAddr, farAddr}, farAddr, dhcp.Offered},
		{"a machine that forwards for the rack", "m", []string{agentAddr, leased, farAddr}, farAddr, dhcp.Spoofed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRack(t, "lr"+tt.short)
			r.bridge()
			r.table.byMAC[parseMAC(t, agentMAC)] = netip.MustParseAddr(leased)
			r.serve(1)
			n := r.router(tt.addresses...)
			for range 2 { // the second is of a relay agent that was confirmed
				if x := r.forwards(n, tt.from); x.Decision != tt.want {
					t.Errorf("got %q (%s), want %q", x.Decision, x.Why, tt.want)
				}
			}
		})
	}
}

// TestBorrowedAgent: a packet from the address of a relay agent on the wire, forwarded by a host that
// does not have it, does not count.
func TestBorrowedAgent(t *testing.T) {
	r := newRack(t, "borrow")
	r.bridge()
	r.serve(1)
	n := r.router()
	n.IP(t, "addr", "add", "fd00:28::fd/64", "dev", "cli", "nodad")
	n.IP(t, "link", "add", "pod", "type", "bridge")
	n.IP(t, "addr", "add", agentAddr+"/128", "dev", "pod", "nodad") // the kernel answers for it on pod alone
	if x := r.forwards(n, agentAddr); x.Decision != dhcp.Spoofed {
		t.Errorf("got %q, want %q", x.Decision, dhcp.Spoofed)
	}
	if x := r.forwards(n, "fd00:28::fd"); x.Decision != dhcp.Offered {
		t.Errorf("its own address: got %q (%s), want %q", x.Decision, x.Why, dhcp.Offered)
	}
}
