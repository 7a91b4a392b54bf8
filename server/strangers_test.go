package server

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/e2e/dhcptest"
	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

// The hosts of FuzzStrangers: a router that relays and forwards for 10.29.0.0/16, a listed relay
// agent, two nodes of which far is behind the router, and a stranger on the wire.
var (
	wireRouter, listedAgent = pools.MAC{2, 0, 0, 0, 0, 0xfe}, pools.MAC{2, 0, 0, 0, 0, 0xfd}
	nearMAC, farMAC         = pools.MAC{2, 0, 0, 0, 0, 1}, pools.MAC{2, 0, 0, 0, 0, 2}
	strangerMAC             = pools.MAC{2, 0, 0, 0, 0, 0x66}

	strangersFarm = resolve.NewFarm(resolve.Checked{Config: pools.Config{
		Subnets: []pools.Subnet{
			{CIDR: netip.MustParsePrefix("10.28.0.0/16"), Router: netip.MustParseAddr("10.28.0.1")},
			{CIDR: netip.MustParsePrefix("10.29.0.0/16"), Router: netip.MustParseAddr("10.29.0.1"), Relays: []netip.Addr{netip.MustParseAddr("10.28.0.253")}},
			{CIDR: netip.MustParsePrefix("fd00:28::/64"), Lease: pools.Duration(time.Hour)},
			{CIDR: netip.MustParsePrefix("fd00:29::/64"), Lease: pools.Duration(time.Hour), Relays: []netip.Addr{netip.MustParseAddr("fd00:28::fd")}},
		},
		Pools: []pools.Pool{
			{Name: "web", Image: "debian-12", Nodes: []pools.Node{
				{Name: "near", MACs: []pools.MAC{nearMAC}, IP: netip.MustParseAddr("10.28.36.1"), IP6: netip.MustParseAddr("fd00:28::36:1")},
				{Name: "far", MACs: []pools.MAC{farMAC}, IP: netip.MustParseAddr("10.29.1.7"), IP6: netip.MustParseAddr("fd00:29::7")},
			}},
			{Name: "lobby", CatchAll: true, Image: "debian-12", Lease: pools.Duration(time.Hour), Range: pools.Range{First: netip.MustParseAddr("10.28.72.10"), Last: netip.MustParseAddr("10.28.72.20")},
				Range6: pools.Range{First: netip.MustParseAddr("fd00:28::72:10"), Last: netip.MustParseAddr("fd00:28::72:20")}},
		},
	}})
)

// honest is a packet of a machine, or of the router or a relay agent for one.
type honest struct {
	name   string
	from   dhcp.Sender
	packet *dhcpv4.DHCPv4
}

func honestPackets() []honest {
	from := func(m pools.MAC, a string) dhcp.Sender {
		return dhcp.Sender{MAC: m, Addr: netip.MustParseAddr(a), Port: 67}
	}
	all := dhcp.Sender{MAC: nearMAC, Addr: netip.IPv4Unspecified(), Port: 68, Broadcast: true}
	relayed := func(agent string) dhcpv4.Modifier {
		return func(d *dhcpv4.DHCPv4) { dhcptest.Giaddr(agent)(d); d.HopCount = 1 }
	}
	discover := func(m pools.MAC, mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
		return dhcptest.Message(m, dhcpv4.MessageTypeDiscover, append(mods, dhcptest.ROM)...)
	}
	return []honest{
		{"a node boots", all, discover(nearMAC)},
		{"a node renews", from(nearMAC, "10.28.36.1"), dhcptest.Message(nearMAC, dhcpv4.MessageTypeRequest, dhcptest.Ciaddr("10.28.36.1"))},
		{"a node boots behind the router", from(wireRouter, "10.28.0.254"), discover(farMAC, relayed("10.29.0.1"))},
		{"a node boots behind the router, relayed from its other address", from(wireRouter, "10.29.0.9"), discover(farMAC, relayed("10.29.0.9"))},
		{"a node boots behind a listed relay agent", from(listedAgent, "10.28.0.253"), discover(farMAC, relayed("10.28.0.253"))},
		{"a node renews behind the router", from(wireRouter, "10.29.1.7"), dhcptest.Message(farMAC, dhcpv4.MessageTypeRequest, dhcptest.Ciaddr("10.29.1.7"))},
	}
}

// outcome is what becomes of an honest packet: whether it counts, unless its sender is a machine that
// answers ARP, which a router does not; and the address that the answer gives.
func (h *honest) outcome(s *dhcp.Senders, r *dhcp.Responder) string {
	var req dhcp.Request
	req.Parse(h.packet.ToBytes())
	v := s.Judge(&req, h.from)
	_, x := r.Reply(&req, time.Now())
	return fmt.Sprintf("dropped %q %v, %s of %s, then %s for %s", v.Drop, v.Err, v.Confirm, v.By, x.Reply, x.Address)
}

// FuzzStrangers: whatever strangers send by IPv4, in the names of routers, relay agents and nodes, the packets
// of all others count as before, and give the same addresses.
func FuzzStrangers(f *testing.F) {
	store, err := state.Open(f.TempDir(), state.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	d := newDirectory(nil, store)
	d.Farm = fixedFarm{strangersFarm}
	senders := &dhcp.Senders{Machines: d, Networks: d, Wire: []netip.Prefix{netip.MustParsePrefix("10.28.0.0/16")}}
	responder := &dhcp.Responder{Farm: d, Leases: store.Leases, Address: netip.MustParseAddr("10.28.0.2")}
	others := honestPackets()
	outcomes := func() (all []string) {
		for i := range others {
			all = append(all, others[i].name+": "+others[i].outcome(senders, responder))
		}
		return all
	}
	for kind := byte(1); kind <= 8; kind++ {
		for host := range byte(6) {
			f.Add([]byte{kind, host, 5, 0, 0, kind, host, 5, 1, 0, kind, host, host, 2, 1})
			f.Add([]byte{1, host, 5, 6, 0, 3, host, 5, 6, 0, kind, host, 5, 6, 0}) // after a lease
		}
	}
	fuzzStrangers(f, outcomes, func(b []byte) { strange(senders, responder, b) })
}

// fuzzStrangers has strangers send packets, of five bytes each, and fails when an outcome for others
// is another one than before.
func fuzzStrangers(f *testing.F, outcomes func() []string, strange func(packet []byte)) {
	before := outcomes()
	f.Fuzz(func(t *testing.T, program []byte) {
		for ; len(program) >= 5; program = program[5:] {
			strange(program[:5])
		}
		for i, got := range outcomes() {
			if got != before[i] {
				t.Fatalf("got %s\nbefore: %s", got, before[i])
			}
		}
	})
}

// strange sends a packet of a stranger, which answers ARP for every address that nobody has: five
// bytes choose its type, in whose name and in whose frame it is, the address that it is about, and
// whether a relay agent has it.
func strange(s *dhcp.Senders, r *dhcp.Responder, b []byte) {
	macs := []pools.MAC{wireRouter, listedAgent, nearMAC, farMAC, {0, 0, 0x5e, 0, 1, 7}, strangerMAC}
	addrs := []string{"10.28.0.1", "10.28.0.254", "10.28.0.253", "10.29.0.1", "10.28.36.1", "10.29.1.7", "10.28.72.11", "10.28.72.20", "10.28.99.9"}
	a := addrs[int(b[3])%len(addrs)]
	name, frame := macs[int(b[1])%len(macs)], macs[int(b[2])%len(macs)]
	d := dhcptest.Message(name, dhcpv4.MessageType(b[0]%9), dhcptest.Requested(a), dhcptest.ServerID(r.Address))
	from := dhcp.Sender{MAC: frame, Addr: netip.IPv4Unspecified(), Port: 68, Broadcast: true}
	if b[4]&1 != 0 { // a renewal, a release
		d = dhcptest.Message(name, dhcpv4.MessageType(b[0]%9), dhcptest.Ciaddr(a))
		from.Addr, from.Broadcast = netip.MustParseAddr(a), false
	}
	if b[4]&2 != 0 {
		dhcptest.Giaddr(a)(d)
		d.HopCount, from.Addr, from.Port, from.Broadcast = b[4]>>2&1, netip.MustParseAddr(a), 67, false
	}
	var req dhcp.Request
	req.Parse(d.ToBytes())
	v := s.Judge(&req, from)
	if v.Drop != "" || v.By != (pools.MAC{}) && (v.By == wireRouter || v.By == listedAgent || v.By == nearMAC) {
		return // its frame is not that of the stranger, whose answers ARP has
	}
	req.From = from.Addr
	_, _ = r.Reply(&req, time.Now())
}
