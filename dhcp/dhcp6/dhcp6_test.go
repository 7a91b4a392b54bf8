package dhcp6_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/dhcp/dhcp6"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

const farmConfig = `server: {interfaces: [lo], address: 10.28.0.2}
subnets:
  - {cidr: 10.28.0.0/16, router: 10.28.0.1, network: hall}
  - {cidr: "fd00:28::/64", dns: ["fd00:28::53"], domain: example.org, network: hall, lease: 1h, address: "fd00:28::2"}
  - {cidr: "fd00:29::/64", lease: 1h, rapidCommit: true}
tags: {all: {loaders: [{class: "PXEClient:Arch:00007:UNDI:009999*", loader: "http://boot.example.org/own.efi"}]}}
pools:
  - name: web
    image: debian-12
    nodes:
      - {name: m1, macs: ["52:54:00:99:00:01", "52:54:00:99:00:02"], ip: 10.28.0.10, ip6: "fd00:28::10"}
      - {name: m2, macs: ["52:54:00:99:00:03"], ip: 10.28.0.11}
      - {name: m3, macs: ["52:54:00:99:00:04"], ip6: "fd00:29::10"}
      - {name: m4, match: {circuitID: eth7}, ip6: "fd00:29::11"}
  - {name: rest, catchall: true, image: debian-12, range6: "fd00:28::100-fd00:28::1ff"}
`

var (
	m1, m1b, m2, m3 = mac(1), mac(2), mac(3), mac(4)
	stray           = mac(0x77)
	own             = netip.MustParseAddr("fd00:28::2")
	noon            = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	serverDUID      = dhcp6.NewDUID(pools.MAC{2, 0, 0, 0, 0, 1})
)

func mac(last byte) pools.MAC { return pools.MAC{0x52, 0x54, 0, 0x99, 0, last} }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// linkLocal returns the address of the form EUI-64.
func linkLocal(m pools.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}

// leases is a lease store of one table in memory.
type leases struct {
	dhcp.NoLeases
	byMAC    map[pools.MAC]netip.Addr
	duid     map[pools.MAC]string
	declined []netip.Addr
	err      error
}

func (l *leases) Offer(p *resolve.Plan, want netip.Addr, _ time.Time) (netip.Addr, bool, error) {
	if a, ok := l.byMAC[p.MAC]; ok {
		return a, false, nil
	}
	if p.Range.Contains(want) && l.free(want) {
		return want, true, nil
	}
	for a := p.Range.First; p.Range.Contains(a); a = a.Next() {
		if l.free(a) {
			return a, true, nil
		}
	}
	return netip.Addr{}, false, pools.ErrRefused
}

func (l *leases) free(a netip.Addr) bool {
	for _, held := range l.byMAC {
		if held == a {
			return false
		}
	}
	return !slices.Contains(l.declined, a)
}

func (l *leases) Commit(p *resolve.Plan, a netip.Addr, _ time.Time) (func() error, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.byMAC[p.MAC], l.duid[p.MAC] = a, p.Query().ClientID
	return func() error { return nil }, nil
}

func (l *leases) Holds(m pools.MAC, _ time.Time) (netip.Addr, bool) {
	a, ok := l.byMAC[m]
	return a, ok
}

func (l *leases) Release(p *resolve.Plan, a netip.Addr, _ time.Time) bool {
	if l.byMAC[p.MAC] != a {
		return true
	}
	if l.duid[p.MAC] != p.Query().ClientID {
		return false
	}
	delete(l.byMAC, p.MAC)
	return true
}

func (l *leases) Leave(m pools.MAC, keep netip.Addr, _ time.Time) {
	if l.byMAC[m] != keep {
		delete(l.byMAC, m)
	}
}

func (l *leases) Decline(p *resolve.Plan, a netip.Addr, _ string, _ time.Time) bool {
	if l.byMAC[p.MAC] != a {
		return false
	}
	delete(l.byMAC, p.MAC)
	l.declined = append(l.declined, a)
	return true
}

// world is a server with its leases.
type world struct {
	testing.TB
	leases *leases
	server *dhcp6.Responder
}

func newWorld(t testing.TB) *world {
	t.Helper()
	farm, err := config.Parse("drover.yaml", []byte(farmConfig))
	if err != nil {
		t.Fatal(err)
	}
	l := &leases{byMAC: map[pools.MAC]netip.Addr{}, duid: map[pools.MAC]string{}}
	return &world{t, l, &dhcp6.Responder{Farm: farm, Leases: l, DUID: serverDUID}}
}

// send sends a message from a machine on the wire, and returns the answer, nil for
// silence.
func (w *world) send(m pools.MAC, msg *dhcpv6.Message) (*dhcpv6.Message, dhcp.Exchange) {
	w.Helper()
	return w.receive(msg.ToBytes(), dhcp6.Sender{MAC: m, Addr: linkLocal(m), Port: 546})
}

func (w *world) receive(packet []byte, from dhcp6.Sender) (*dhcpv6.Message, dhcp.Exchange) {
	w.Helper()
	var r dhcp6.Request
	r.Parse(packet, from)
	reply, x := w.server.Reply(&r, own, noon)
	if reply == nil {
		return nil, x
	}
	if reply.Port != dhcp6.ClientPort {
		w.Errorf("the answer goes to port %d, want %d", reply.Port, dhcp6.ClientPort)
	}
	out, err := dhcpv6.MessageFromBytes(reply.Bytes)
	if err != nil {
		w.Fatalf("answer %x: %v", reply.Bytes, err)
	}
	return out, x
}

// message returns a message with a DUID of the machine, and modifiers.
func message(t dhcpv6.MessageType, m pools.MAC, mods ...dhcpv6.Modifier) *dhcpv6.Message {
	msg := &dhcpv6.Message{MessageType: t, TransactionID: dhcpv6.TransactionID{1, 2, 3}}
	msg.AddOption(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: m[:]}))
	for _, mod := range mods {
		mod(msg)
	}
	return msg
}

func with(o dhcpv6.Option) dhcpv6.Modifier { return func(d dhcpv6.DHCPv6) { d.AddOption(o) } }

// toUs adds the server identifier.
func toUs(m dhcpv6.DHCPv6) {
	m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionServerID, OptionData: serverDUID})
}

// ia adds an IA_NA with addresses.
func ia(id byte, addrs ...string) dhcpv6.Modifier {
	o := &dhcpv6.OptIANA{IaId: [4]byte{3: id}}
	for _, a := range addrs {
		o.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(a)})
	}
	return with(o)
}

func duidUUID(first byte) dhcpv6.Modifier {
	return func(d dhcpv6.DHCPv6) {
		d.UpdateOption(dhcpv6.OptClientID(&dhcpv6.DUIDUUID{UUID: [16]byte{first, 9, 8}}))
	}
}

// pxe are the options of firmware, as OVMF sends them.
func pxe(arch iana.Arch, class string) dhcpv6.Modifier {
	return func(d dhcpv6.DHCPv6) {
		d.AddOption(dhcpv6.OptClientArchType(arch))
		d.AddOption(&dhcpv6.OptNetworkInterfaceID{Typ: 1, Major: 3})
		d.AddOption(&dhcpv6.OptVendorClass{EnterpriseNumber: 343, Data: [][]byte{[]byte(class)}})
		d.AddOption(dhcpv6.OptRequestedOption(59, 60, 23, 16))
	}
}

func ipxe(d dhcpv6.DHCPv6) { d.AddOption(&dhcpv6.OptUserClass{UserClasses: [][]byte{[]byte("iPXE")}}) }

// given returns the address of the first IA_NA with the lifetime, and its status.
func given(t *testing.T, m *dhcpv6.Message) (a netip.Addr, valid time.Duration, status iana.StatusCode) {
	t.Helper()
	if m == nil {
		t.Fatal("got silence, want an answer")
	}
	na := m.Options.OneIANA()
	if na == nil {
		t.Fatalf("no IA_NA in %s", m.Summary())
	}
	if s := na.Options.Status(); s != nil {
		status = s.StatusCode
	}
	if one := na.Options.OneAddress(); one != nil {
		a, _ = netip.AddrFromSlice(one.IPv6Addr)
		valid = one.ValidLifetime
	}
	return a, valid, status
}
