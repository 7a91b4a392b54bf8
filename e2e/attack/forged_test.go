package attack_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/attack"
	"drover/e2e/dhcptest"
	"drover/e2e/netns"
	"drover/pools"
)

// sender is a host that can send UDP to the server but no frame on the boot network.
type sender struct {
	name  string
	relay string // giaddr of its messages; "": none
	send  func(payload []byte, ciaddr netip.Addr) error
}

// senders returns the hosts that send in the name of others: programs in a pod without
// capabilities, whose address the node masquerades; pods with CAP_NET_RAW, which the
// node routes as they are; hosts of another network.
func senders(t *testing.T, l *attack.Lab) []sender {
	t.Helper()
	plain := func(n netns.Namespace, from, to uint16) func([]byte, netip.Addr) error {
		return func(b []byte, _ netip.Addr) error { return attack.Plain(n, from, to, b) }
	}
	raw := func(n netns.Namespace, from string, port uint16, ttl byte) func([]byte, netip.Addr) error {
		r, err := attack.NewRaw(n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return func(b []byte, ciaddr netip.Addr) error {
			source := ciaddr
			if from != "" {
				source = netip.MustParseAddr(from)
			}
			if !source.IsValid() {
				return nil
			}
			return r.Send(attack.Packet{
				From: netip.AddrPortFrom(source, port), To: netip.MustParseAddrPort(attack.ServerAddr + ":67"), TTL: ttl, Payload: b,
			})
		}
	}
	return []sender{
		{"a pod", "", plain(l.Pod, 68, 67)},
		{"a pod from any port", "", plain(l.Pod, 0, 67)},
		{"a pod as relay of its own address", attack.PodAddr, plain(l.Pod, 67, 67)},
		{"a pod as relay of its node", attack.NodeAddr, plain(l.Pod, 67, 67)},
		{"a pod as the router's relay", attack.RouterAddr, plain(l.Pod, 67, 67)},
		{"a raw pod from nobody's address", "", raw(l.Pod, "10.77.0.250", 68, 0)},
		{"a raw pod without an address", "", raw(l.Pod, "0.0.0.0", 68, 0)},
		{"a raw pod from ciaddr", "", raw(l.Pod, "", 68, 0)},
		{"a raw pod from ciaddr, one hop more", "", raw(l.Pod, "", 68, 65)},
		{"a raw pod as the router's relay", attack.RouterAddr, raw(l.Pod, attack.RouterAddr, 67, 0)},
		{"a raw pod as the router's relay, one hop more", attack.RouterAddr, raw(l.Pod, attack.RouterAddr, 67, 65)},
		{"a raw pod as the router's relay, the most hops", attack.RouterAddr, raw(l.Pod, attack.RouterAddr, 67, 255)},
		{"a raw pod as nobody's relay", "10.77.0.250", raw(l.Pod, "10.77.0.250", 67, 65)},
		{"a routed host", "", plain(l.Routed, 68, 67)},
		{"a routed host as relay of its own address", attack.RoutedAddr, plain(l.Routed, 67, 67)},
		{"a routed host as the router's relay", attack.RouterAddr, plain(l.Routed, 67, 67)},
		{"a host on the wire, by unicast", "", plain(l.Wire, 68, 67)},
	}
}

// forgery is a message in the name of another machine.
type forgery struct {
	name    string
	message func(mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4
	ciaddr  netip.Addr
}

// forgeries returns messages that would change what the server knows of m2, of m1, of a
// machine with a lease of the lobby, or of a switch port.
func forgeries(lobby string) []forgery {
	of := func(mac pools.MAC, kind dhcpv4.MessageType, own ...dhcpv4.Modifier) func(...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
		return func(mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
			return dhcptest.Message(mac, kind, append(own, mods...)...)
		}
	}
	server := dhcptest.ServerID(netip.MustParseAddr(attack.ServerAddr))
	with := func(name string, mac pools.MAC, kind dhcpv4.MessageType, ciaddr string, own ...dhcpv4.Modifier) forgery {
		return forgery{name, of(mac, kind, append(own, dhcptest.Ciaddr(ciaddr))...), netip.MustParseAddr(ciaddr)}
	}
	const (
		discover, request, release  = dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeRelease
		decline, inform             = dhcpv4.MessageTypeDecline, dhcpv4.MessageTypeInform
		machine, node, free, dnsOne = attack.MachineIP, attack.NodeAddr, attack.FreeAddr, attack.DNSAddr
	)
	m, n, x := attack.MachineMAC, attack.NodeMAC, attack.LobbyMAC
	port := dhcptest.Option(82, append([]byte("\x01\x02p1\x02\x03"), "sw1"...)...)
	unknown := pools.MAC{2, 0, 0, 0, 0, 9}
	return []forgery{
		{name: "DISCOVER of m2's firmware", message: of(m, discover, dhcptest.ROM)}, // H3
		{name: "DISCOVER of m2", message: of(m, discover)},
		{name: "DISCOVER of m1's firmware", message: of(n, discover, dhcptest.ROM)}, // H4
		{name: "DISCOVER of an unknown machine", message: of(unknown, discover, dhcptest.ROM)},
		{name: "REQUEST of m2 for its address", message: of(m, request, dhcptest.Requested(machine))},
		{name: "REQUEST of m2's firmware after an OFFER", message: of(m, request, dhcptest.ROM, server, dhcptest.Requested(machine))},
		{name: "REQUEST of m2 for a free address", message: of(m, request, dhcptest.Requested(free))},
		{name: "REQUEST of an unknown machine", message: of(unknown, request, dhcptest.Requested("10.77.72.99"))}, // H3
		with("REQUEST of m2 at the DNS server's", m, request, dnsOne),                                             // H1
		with("REQUEST of m2 at the router's", m, request, attack.RouterAddr),
		with("REQUEST of m2 at m1's", m, request, node),
		with("REQUEST of m2 at a free one", m, request, free),
		with("REQUEST of m1 at a free one", n, request, free),
		with("REQUEST of the lobby's machine at a free one", x, request, free),
		{name: "REQUEST with m2's switch port", message: of(unknown, request, port, dhcptest.Requested(attack.PortIP))}, // H2
		{name: "DISCOVER with a switch port", message: of(unknown, discover, port, dhcptest.ROM)},
		with("REQUEST with a switch port, renewing", unknown, request, attack.PortIP, port),
		with("INFORM of m2 at a free one", m, inform, free),
		with("RELEASE of the lobby's machine", x, release, lobby, server), // H3
		{name: "DECLINE of the lobby's machine", message: of(x, decline, server, dhcptest.Requested(lobby))},
		{name: "DECLINE of m2", message: of(m, decline, server, dhcptest.Requested(machine))},
		with("RELEASE of m2", m, release, machine, server),
	}
}

// believed is what the server knows of its machines: leases and boots.
func believed(s *attack.Server) string {
	b := s.Boots()
	delete(b, "") // none
	var lines []string
	for _, node := range slices.Sorted(maps.Keys(b)) {
		lines = append(lines, fmt.Sprintf("%s booted %d times", node, b[node]))
	}
	return strings.Join(append(lines, s.Leases()...), "\n")
}

// TestForgedSenders (C1, H1 to H4) sends DHCP in the name of other machines, from hosts
// that cannot send a frame on the boot network. None of it changes a lease or begins a
// boot, nobody gets a nonce or a config, and m2 gets its own address afterwards.
func TestForgedSenders(t *testing.T) {
	l := newLab(t)
	s := l.Serve(t, fmt.Sprintf(attack.Farm, ""), 1<<20)
	machine := m2(l)
	boots(t, machine)
	lobby := &attack.Machine{Net: l.Lobby, MAC: attack.LobbyMAC}
	boots(t, lobby)
	boots(t, &attack.Machine{Net: l.Node, MAC: attack.NodeMAC})
	for _, from := range senders(t, l) {
		t.Run(from.name, func(t *testing.T) {
			before := believed(s)
			for _, f := range forgeries(lobby.Address) {
				var mods []dhcpv4.Modifier
				if from.relay != "" {
					mods = append(mods, dhcptest.Giaddr(from.relay), func(d *dhcpv4.DHCPv4) { d.HopCount = 1 })
				}
				if err := from.send(f.message(mods...).ToBytes(), f.ciaddr); err != nil {
					t.Fatalf("%s: %v", f.name, err)
				}
				time.Sleep(40 * time.Millisecond) // until the server has read it, most likely
				if after := believed(s); after != before {
					t.Errorf("%s: the server believed\n%s\nand now\n%s", f.name, before, after)
					before = after
				}
			}
			steals(t, l)
			machine.Lease(t, false)
			if machine.Address != attack.MachineIP {
				t.Errorf("m2 gets address %s, want its own %s", machine.Address, attack.MachineIP)
			}
		})
	}
	s.WantSmall()
}

// steals fails the test if another host gets the config of m1 or m2.
func steals(t *testing.T, l *attack.Lab) {
	t.Helper()
	for who, n := range map[string]netns.Namespace{"the pod": l.Pod, "the routed host": l.Routed, "a host on the wire": l.Wire} {
		for _, mac := range []pools.MAC{attack.NodeMAC, attack.MachineMAC} {
			if attack.Steal(t.Context(), n, mac) == nil {
				t.Errorf("%s has the config of %s", who, mac)
			}
		}
	}
}
