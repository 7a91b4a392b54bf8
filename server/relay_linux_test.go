package server

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"drover/dhcp"
	"drover/e2e/fixture"
	"drover/e2e/netns"
)

// branch is two networks behind a relay agent, which is their router: two ports of a
// switch with a machine at each.
type branch struct {
	*office
	relay        netns.Namespace
	port7, port8 netns.Namespace // 10.29.0.0/16 and 10.30.0.0/16
}

const branchPools = `
  - name: racks
    image: debian-12
    nodes:
      - {name: slot7, match: {circuitID: port7}, ip: 10.29.1.7}
      - {name: card2, macs: ["52:54:00:00:00:02"], ip: 10.29.1.2}
  - {name: lobby, catchall: true, image: debian-12, range: 10.30.72.10-10.30.72.20}
  - {name: hall, catchall: true, image: debian-12, range: 10.28.72.10-10.28.72.20}
  - {name: aisle, catchall: true, image: debian-12, range: 10.29.72.10-10.29.72.20}
`

func newBranch(t *testing.T, programs ...string) *branch {
	t.Helper()
	b := &branch{office: newOffice(t, false, branchPools, programs...)}
	b.relay = netns.NewNamespace(t, string(b.net)+"r")
	b.net.Link(t, "relay", b.relay, "uplink")
	b.net.IP(t, "link", "set", "relay", "master", "srv", "up")
	b.relay.IP(t, "addr", "add", "10.28.0.254/16", "dev", "uplink")
	b.relay.IP(t, "link", "set", "up", "uplink")
	b.port7, b.port8 = b.port("port7", "10.29.0.1/16"), b.port("port8", "10.30.0.1/16")
	if out, err := b.relay.Command("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward").CombinedOutput(); err != nil {
		t.Fatalf("forwarding: %v: %s", err, out)
	}
	return b
}

// port makes a port of the relay, a machine at it, and the server's route to it.
func (b *branch) port(name, router string) netns.Namespace {
	b.t.Helper()
	n := netns.NewNamespace(b.t, string(b.net)+name)
	b.relay.Link(b.t, name, n, "cli")
	b.relay.IP(b.t, "addr", "add", router, "dev", name)
	b.relay.IP(b.t, "link", "set", name, "up")
	b.net.IP(b.t, "route", "add", netip.MustParsePrefix(router).Masked().String(), "via", "10.28.0.254")
	return n
}

// routeVia gives the machine at a port a route to the server, so that it renews without
// the relay agent.
func routeVia(t *testing.T, port netns.Namespace, router string) {
	t.Helper()
	port.IP(t, "route", "replace", "default", "via", router)
}

// wantACK waits for an ACK to a machine whose REQUEST came through the relay agent with
// this giaddr; "" is for a REQUEST that came directly from the machine. dhcrelay reads
// frames, not a socket: it also relays a copy of each packet that it routes.
func (b *branch) wantACK(mac, giaddr string) {
	b.t.Helper()
	fixture.Eventually(b.t, fmt.Sprintf("an ACK to %s through relay %q", mac, giaddr), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.ContainsFunc(b.seen, func(x dhcp.Exchange) bool {
			direct := giaddr == "" && !x.Giaddr.IsValid()
			return x.MAC.String() == mac && x.Reply == "ACK" && (direct || x.Giaddr.String() == giaddr)
		})
	})
}

// wantNoNAK fails if a machine was sent a NAK. dhcrelay's copy of a packet can seem to
// come from the server's own network.
func (b *branch) wantNoNAK(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.seen {
		if x.Reply == "NAK" {
			t.Errorf("%s got a NAK: %s", x.MAC, x.Why)
		}
	}
}

// TestISCRelay has dhcrelay between the machines and the server. It adds the
// name of its port as circuit-id.
func TestISCRelay(t *testing.T) {
	b := newBranch(t, "dhcrelay", "udhcpc", "dhcpcd")
	b.relay.Daemon(t, "dhcrelay", "-4", "-d", "--no-pid", "-a", "-id", "port7", "-id", "port8", "-iu", "uplink", "10.28.0.2")
	b.checkSlot(t, "10.29.0.1")
	b.checkLobby(t, "10.30.0.1")
	b.wantNoNAK(t)
}

// TestISCRelayLinkSelection has a relay whose address is in the server's network. The
// machine's own network is in sub-option 5 (RFC 3527).
func TestISCRelayLinkSelection(t *testing.T) {
	b := newBranch(t, "dhcrelay", "udhcpc", "dhcpcd")
	b.relay.Daemon(t, "dhcrelay", "-4", "-d", "--no-pid", "-a", "-U", "uplink", "-id", "port7", "-id", "port8", "10.28.0.2")
	b.checkSlot(t, "10.28.0.254")
	b.checkLobby(t, "10.28.0.254")
	b.wantNoNAK(t)
}

// TestISCRelayChain has two relays in a row. The first sets giaddr, and the second
// leaves it. The second changes option 82 according to its flag -m.
func TestISCRelayChain(t *testing.T) {
	b := newBranch(t, "dhcrelay", "udhcpc")
	b.relay.Daemon(t, "dhcrelay", "-4", "-d", "--no-pid", "-a", "-id", "port7", "-id", "port8", "-iu", "uplink", "10.28.0.253")
	for i, tt := range []struct{ mode, address string }{
		{"append", "10.29.1.7"},    // the port of the first relay counts
		{"forward", "10.29.1.7"},   // the port of the first relay is the only one
		{"replace", "10.29.72.10"}, // the port of the first relay is lost: the machine is unknown
	} {
		t.Run(tt.mode, func(t *testing.T) {
			b.t = t
			second := b.host("second")
			second.IP(t, "addr", "add", "10.28.0.253/16", "dev", "cli")
			second.IP(t, "link", "set", "cli", "up")
			second.Daemon(t, "dhcrelay", "-4", "-d", "--no-pid", "-a", "-m", tt.mode, "-i", "cli", "10.28.0.2")
			mac := fmt.Sprintf("52:54:00:77:09:%02d", i)
			plug(t, b.port7, netns.Udhcpc(), mac).starts(tt.address)
			b.wantACK(mac, "10.29.0.1")
		})
	}
}

// TestDnsmasqRelay has a relay that adds nothing but its address.
func TestDnsmasqRelay(t *testing.T) {
	b := newBranch(t, "dnsmasq", "udhcpc", netns.Networkd().Program)
	b.relay.Daemon(t, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--port=0", "--log-facility=-",
		"--dhcp-relay=10.29.0.1,10.28.0.2", "--dhcp-relay=10.30.0.1,10.28.0.2")
	const mac = "52:54:00:00:00:02"
	m := plug(t, b.port7, netns.Networkd(), mac)
	if got := m.starts("10.29.1.2"); got["router"] != "10.29.0.1" || got["mask"] != "255.255.0.0" {
		t.Errorf("got router %q and mask %q of another network", got["router"], got["mask"])
	}
	b.wantACK(mac, "10.29.0.1")
	m.Release(t)
	b.checkLobby(t, "10.30.0.1")

	// The address of this node is in another network than its port.
	m = plug(t, b.port8, netns.Udhcpc(), mac)
	m.Start(t)
	if m.End(t) == nil {
		t.Error("card2 got an address on a network that is not its own")
	}
	if x := b.last(mac); x.Plan != nil || !strings.Contains(x.Why, "10.29.1.2") {
		t.Errorf("got %q, %q: want it said that its address is of another network", x.Decision, x.Why)
	}
}

// checkSlot boots machines at port 7, where the node is identified by its port only.
func (b *branch) checkSlot(t *testing.T, giaddr string) {
	t.Helper()
	const one, other = "52:54:00:77:07:01", "52:54:00:77:07:02"
	m := plug(t, b.port7, netns.Udhcpc(), one)
	got := m.starts("10.29.1.7")
	for name, want := range map[string]string{"hostname": "slot7", "router": "10.29.0.1", "server": "10.28.0.2"} {
		if got[name] != want {
			t.Errorf("%s has %s=%q, want %q", one, name, got[name], want)
		}
	}
	b.wantACK(one, giaddr)
	if got := b.lease(one); got != "10.29.1.7" {
		t.Errorf("%s has a lease of %s: HTTP and TFTP will not find it by its MAC", one, got)
	}

	// It renews without the relay agent, hence without a circuit-id.
	routeVia(t, b.port7, "10.29.0.1")
	if got := m.renews()["address"]; got != "10.29.1.7" {
		t.Errorf("renewed %q, want 10.29.1.7", got)
	}
	b.wantACK(one, "")
	m.Kill()

	// Another card in its slot is the same node.
	m = plug(t, b.port7, netns.Udhcpc(), other)
	m.starts("10.29.1.7")
	if one, other := b.lease(one), b.lease(other); one != "none" || other != "10.29.1.7" {
		t.Errorf("the old card has a lease of %s, the new one of %s", one, other)
	}
	routeVia(t, b.port7, "10.29.0.1")
	m.Release(t)
	fixture.Eventually(t, "the end of the lease", func() bool { return b.lease(other) == "none" })
}

// checkLobby boots unknown hardware at port 8.
func (b *branch) checkLobby(t *testing.T, giaddr string) {
	t.Helper()
	const mac = "52:54:00:77:08:01"
	m := plug(t, b.port8, netns.Udhcpc(), mac)
	if got := m.starts("10.30.72.10"); got["router"] != "10.30.0.1" || got["hostname"] != "node-525400770801" {
		t.Errorf("unknown hardware got router %q, name %q", got["router"], got["hostname"])
	}
	b.wantACK(mac, giaddr)
	routeVia(t, b.port8, "10.30.0.1")
	m.renews()
	b.wantACK(mac, "")
	m.Kill()
}
