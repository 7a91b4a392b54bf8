package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/bootprogram"
	"drover/pools"
	"drover/pools/resolve"
)

// wire passes the packets of one machine to the responder of a server without sockets:
// the real farm, leases on disk, and the table of boots.
type wire struct {
	*testing.T
	server    *Server
	responder dhcp.Responder
	now       time.Time
	mac       pools.MAC
	address   netip.Addr // of the last ACK
}

var serverAddress = netip.MustParseAddr("10.28.0.2")

// newWire returns the wire of a server with these pools, or in proxy mode.
func newWire(t *testing.T, mode pools.DHCPMode, text string) *wire {
	t.Helper()
	t.Chdir(t.TempDir())
	head := fmt.Sprintf(`server: {interfaces: [lo], address: %s, dhcp: %s}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.53], lease: 1h}, {cidr: 10.29.0.0/16, router: 10.29.0.1, lease: 1h}]
pools:
`, serverAddress, mode)
	if err := os.WriteFile("drover.yaml", []byte(head+text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	w := &wire{T: t, server: s, now: time.Now(), mac: pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}}
	s.Machines.Now = func() time.Time { return w.now }
	w.responder = dhcp.Responder{Farm: s.Machines, Leases: s.Store.Leases, Address: serverAddress, Mode: mode}
	return w
}

// send passes one packet to the server, and returns the reply, or nil.
func (w *wire) send(packet *dhcpv4.DHCPv4) (*dhcpv4.DHCPv4, dhcp.Exchange) {
	w.Helper()
	var req dhcp.Request
	req.Parse(packet.ToBytes())
	if from, ok := netip.AddrFromSlice(packet.ClientIPAddr.To4()); ok && !from.IsUnspecified() && !req.Giaddr.IsValid() {
		req.From = from
	}
	m, x := w.responder.Reply(&req, w.now)
	if m != nil && m.Wait != nil {
		if err := m.Wait(); err != nil {
			w.Fatal(err)
		}
	}
	w.server.exchange(x)
	if m == nil {
		return nil, x
	}
	reply, err := dhcpv4.FromBytes(m.Append(nil))
	if err != nil {
		w.Fatal(err)
	}
	return reply, x
}

// program returns the DISCOVER of a program of the machine.
func (w *wire) program(d bootprogram.Discover) *dhcpv4.DHCPv4 {
	d.MAC = w.mac
	return d.Packet()
}

// request returns the REQUEST of a program in one of the states of RFC 2131, 4.3.2.
func (w *wire) request(d bootprogram.Discover, serverID, requested, ciaddr netip.Addr) *dhcpv4.DHCPv4 {
	p := w.program(d)
	p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeRequest))
	if serverID.IsValid() {
		p.UpdateOption(dhcpv4.OptServerIdentifier(net.IP(serverID.AsSlice())))
	}
	if requested.IsValid() {
		p.UpdateOption(dhcpv4.OptRequestedIPAddress(net.IP(requested.AsSlice())))
	}
	if ciaddr.IsValid() {
		p.ClientIPAddr = net.IP(ciaddr.AsSlice())
	}
	return p
}

// boot leases an address for a program: DISCOVER, OFFER, REQUEST, ACK. It returns the
// pool, or "" for silence.
func (w *wire) boot(d bootprogram.Discover) (pool string) {
	w.Helper()
	w.now = w.now.Add(5 * time.Second)
	offer, x := w.send(w.program(d))
	if offer == nil {
		return ""
	}
	given, _ := netip.AddrFromSlice(offer.YourIPAddr.To4())
	ack, y := w.send(w.request(d, serverAddress, given, netip.Addr{}))
	if ack == nil || y.Reply != "ACK" || y.Plan.Pool != x.Plan.Pool {
		w.Errorf("the REQUEST after the OFFER of %s in pool %s: got %q (%q, %v)", given, x.Plan.Pool, y.Reply, y.Decision, y.Err)
		return ""
	}
	w.address = given
	return y.Plan.Pool
}

// stays fails the test unless the machine is in the pool for every protocol, at the
// address of its last ACK.
func (w *wire) stays(when, pool string) {
	w.Helper()
	lease, ok := w.server.Store.Leases.Of(w.mac)
	if !ok || lease.Pool != pool || lease.Address != w.address {
		w.Errorf("%s: the lease is %+v (%t), want pool %s at %s", when, lease, ok, pool, w.address)
	}
	// Script, node config and join find the machine by its MAC, files by its address.
	if m := w.server.Machines.Of(w.mac); m.Plan == nil || m.Plan.Pool != pool || m.Address != w.address {
		w.Errorf("%s: by the MAC got %+v at %s, want pool %s at %s", when, m.Plan, m.Address, pool, w.address)
	}
	if m, ok := w.server.Machines.At(w.address); !ok || m.Plan == nil || m.Plan.Pool != pool || m.MAC != w.mac {
		w.Errorf("%s: at %s got %+v, want pool %s", when, w.address, m.Plan, pool)
	}
}

// The programs of a boot after the firmware.
var (
	droverInit = bootprogram.Discover{Class: "drover-init", ClientID: "\x01RTw\x01\x01\x01"}
	system     = bootprogram.Discover{ClientID: "\xff\x00\x00\x00\x01an identifier of the system"}
)

func ipxe(d bootprogram.Discover) bootprogram.Discover {
	return bootprogram.Discover{Firmware: d.Firmware, IPXE: true}
}

// TestCatchAllKeepsItsMachine is W1: a pool that was chosen by what the firmware sends
// lost its machine in the middle of the boot, to the next pool or to silence.
func TestCatchAllKeepsItsMachine(t *testing.T) {
	for _, tt := range []struct {
		match    string
		firmware bootprogram.Discover
	}{
		{"firmware: uefi-arm64", bootprogram.Discover{Firmware: pools.UEFIarm64}},
		{"firmware: uefi-arm64-http", bootprogram.Discover{Firmware: pools.UEFIarm64HTTP}},
		{"firmware: bios", bootprogram.Discover{Firmware: pools.BIOS}},
		{"firmware: uboot-arm64", bootprogram.Discover{Firmware: pools.UBootArm64}},
		{`class: "HTTPClient*"`, bootprogram.Discover{Firmware: pools.UEFIx64HTTP}},
		{`class: "PXEClient:Arch:00007:*"`, bootprogram.Discover{Firmware: pools.UEFIx64}},
		{"arch: 19", bootprogram.Discover{Firmware: pools.UEFIarm64HTTP}},
		{"arch: 7", bootprogram.Discover{Firmware: pools.UEFIx64}},
		{"userClass: rack7", bootprogram.Discover{Firmware: pools.UEFIx64, UserClass: "rack7"}},
		{`firmware: uefi-x64, class: "PXEClient*", userClass: "rack*"`, bootprogram.Discover{Firmware: pools.UEFIx64, UserClass: "rack7"}},
	} {
		chosen := fmt.Sprintf("  - {name: chosen, catchall: true, image: a, match: {%s}, range: 10.28.60.1-10.28.60.99}\n", tt.match)
		for name, others := range map[string]string{
			"alone":      "",
			"with lobby": "  - {name: lobby, catchall: true, image: b, range: 10.28.72.1-10.28.72.99}\n",
			"with others": `  - {name: pxe, catchall: true, image: b, match: {class: "PXEClient*"}, range: 10.28.73.1-10.28.73.99}
  - {name: x64, catchall: true, image: b, match: {firmware: uefi-x64}, range: 10.28.74.1-10.28.74.99}
  - {name: arm, catchall: true, image: b, match: {arch: 11}, range: 10.28.75.1-10.28.75.99}
  - {name: ipxe, catchall: true, image: b, match: {userClass: iPXE}, range: 10.28.75.100-10.28.75.199}
  - {name: init, catchall: true, image: b, match: {class: drover-init}, range: 10.28.76.1-10.28.76.99}
  - {name: lobby, catchall: true, image: b, range: 10.28.72.1-10.28.72.99}
`,
			"with one of the same addresses": "  - {name: lobby, catchall: true, image: b, range: 10.28.60.1-10.28.60.99}\n",
		} {
			t.Run(tt.match+" "+name, func(t *testing.T) {
				w := newWire(t, pools.DHCPFull, chosen+others)
				for range 2 { // the second boot finds the lease of the first
					w.wholeBoot("chosen", tt.firmware)
					w.renewals("chosen")
				}
			})
		}
	}
}

// wholeBoot boots the machine.
func (w *wire) wholeBoot(pool string, firmware bootprogram.Discover) {
	w.Helper()
	for _, p := range []struct {
		name string
		bootprogram.Discover
	}{{"firmware", firmware}, {"iPXE", ipxe(firmware)}, {"drover-init", droverInit}, {"system", system}} {
		if got := w.boot(p.Discover); got != pool {
			w.Errorf("%s: got pool %q, want %q", p.name, got, pool)
		}
		w.stays(p.name, pool)
	}
}

// renewals has the operating system renew, rebind, come back and ask for options.
func (w *wire) renewals(pool string) {
	w.Helper()
	w.now = w.now.Add(30 * time.Minute)
	none := netip.Addr{}
	rebinds := w.request(system, none, none, w.address)
	rebinds.GatewayIPAddr, rebinds.HopCount = net.IPv4(10, 28, 0, 254), 1
	informs := w.request(system, none, none, w.address)
	informs.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeInform))
	for _, p := range []struct {
		name   string
		packet *dhcpv4.DHCPv4
	}{
		{"renews", w.request(system, none, none, w.address)},
		{"rebinds through a relay agent", rebinds},
		{"comes back", w.request(system, none, w.address, none)},
		{"informs", informs},
	} {
		if _, x := w.send(p.packet); x.Reply != "ACK" || x.Plan.Pool != pool {
			w.Errorf("it %s: got %q (%q, %v)", p.name, x.Reply, x.Decision, x.Err)
		}
		w.stays(p.name, pool)
	}
}

const kinds = `  - {name: x64, catchall: true, image: a, match: {firmware: uefi-x64}, range: 10.28.60.1-10.28.60.99}
  - {name: http, catchall: true, image: a, match: {class: "HTTPClient*"}, range: 10.28.61.1-10.28.61.99}
  - {name: pc, catchall: true, image: a, match: {firmware: bios}, range: 10.28.62.1-10.28.62.99}
`

const lobby = "  - {name: lobby, catchall: true, image: b, range: 10.28.72.1-10.28.72.99}\n"

// TestNextBootChoosesAnew: a boot program that begins a boot may take the machine to
// another pool, whose match it fulfils.
func TestNextBootChoosesAnew(t *testing.T) {
	w := newWire(t, pools.DHCPFull, kinds+lobby)
	x64, http, pc := bootprogram.Discover{Firmware: pools.UEFIx64}, bootprogram.Discover{Firmware: pools.UEFIx64HTTP}, bootprogram.Discover{Firmware: pools.BIOS}
	if got := w.boot(system); got != "lobby" {
		t.Errorf("a system without a lease: got pool %q", got)
	}
	w.wholeBoot("x64", x64)
	w.wholeBoot("http", http)
	w.wholeBoot("pc", pc)
	if got := w.boot(http); got != "http" {
		t.Errorf("firmware that tries HTTP first: got pool %q", got)
	}
	w.wholeBoot("x64", x64)
	w.wholeBoot("x64", bootprogram.Discover{Firmware: pools.UEFIarm64}) // no pool names it
}

// TestIPXEInROM: an iPXE that no other program loaded chooses the pool like any firmware.
// One that firmware loaded stays where the firmware was, or goes to a pool of its user
// class.
func TestIPXEInROM(t *testing.T) {
	rom, loads := bootprogram.Discover{Firmware: pools.BIOS, IPXE: true}, bootprogram.Discover{Firmware: pools.UEFIarm64HTTP}
	w := newWire(t, pools.DHCPFull, kinds+lobby)
	w.boot(system)
	w.now = w.now.Add(20 * time.Minute)
	if got := w.boot(rom); got != "pc" {
		t.Errorf("an iPXE in ROM: got pool %q", got)
	}
	w.stays("an iPXE in ROM", "pc")

	const arms = "  - {name: arm, catchall: true, image: a, match: {arch: 11}, range: 10.28.63.1-10.28.63.99}\n"
	w = newWire(t, pools.DHCPFull, arms+lobby)
	w.wholeBoot("lobby", loads)

	const ownClass = "  - {name: ipxe, catchall: true, image: a, match: {userClass: iPXE}, range: 10.28.63.1-10.28.63.99}\n"
	w = newWire(t, pools.DHCPFull, ownClass+lobby)
	if got := w.boot(loads); got != "lobby" {
		t.Errorf("firmware: got pool %q", got)
	}
	for _, d := range []bootprogram.Discover{ipxe(loads), droverInit, system, loads, ipxe(loads)} {
		if got := w.boot(d); got != "ipxe" {
			t.Errorf("%+v: got pool %q, want ipxe", d, got)
		}
	}
}

// TestCatchAllAfterTheLease: the pool of a lease that has ended counts no more.
func TestCatchAllAfterTheLease(t *testing.T) {
	for others, want := range map[string]string{"": "", lobby: "lobby"} {
		w := newWire(t, pools.DHCPFull, kinds+others)
		w.wholeBoot("pc", bootprogram.Discover{Firmware: pools.BIOS})
		w.now = w.now.Add(2 * time.Hour)
		if got := w.boot(system); got != want {
			t.Errorf("after the end of the lease: got pool %q, want %q", got, want)
		}
		w.wholeBoot("pc", bootprogram.Discover{Firmware: pools.BIOS})
		returns := w.request(system, netip.Addr{}, netip.Addr{}, w.address)
		returns.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeRelease))
		w.send(returns)
		if got := w.boot(system); got != want {
			t.Errorf("after a RELEASE: got pool %q, want %q", got, want)
		}
	}
}

// TestCatchAllBehindAnotherRelay: a machine that moves to another network leaves the pool
// of its lease, and gets a NAK for its address.
func TestCatchAllBehindAnotherRelay(t *testing.T) {
	none := netip.Addr{}
	const annex = "  - {name: annex, catchall: true, image: b, range: 10.29.72.1-10.29.72.99}\n"
	for others, want := range map[string]string{annex: "NAK", "": ""} {
		w := newWire(t, pools.DHCPFull, kinds+others)
		w.wholeBoot("pc", bootprogram.Discover{Firmware: pools.BIOS})
		moved := system
		moved.Relay = netip.MustParseAddr("10.29.0.254")
		if _, x := w.send(w.request(moved, none, w.address, none)); x.Reply != want {
			t.Errorf("it comes back behind another relay agent: got %q (%q), want %q", x.Reply, x.Decision, want)
		}
		if got := w.boot(moved); (got == "annex") != (want != "") {
			t.Errorf("it looks for an address there: got pool %q", got)
		}
	}
}

// TestCatchAllAtAnotherPort: a pool of a switch keeps its machines at that switch only.
func TestCatchAllAtAnotherPort(t *testing.T) {
	w := newWire(t, pools.DHCPFull, `  - {name: sw1, catchall: true, image: a, match: {remoteID: sw1, firmware: bios}, range: 10.29.60.1-10.29.60.99}
  - {name: annex, catchall: true, image: b, range: 10.29.72.1-10.29.72.99}
`)
	at := func(d bootprogram.Discover, remote string) bootprogram.Discover {
		d.Relay, d.RemoteID = netip.MustParseAddr("10.29.0.254"), remote
		return d
	}
	for _, p := range []struct {
		bootprogram.Discover
		want string
	}{
		{at(bootprogram.Discover{Firmware: pools.BIOS}, "sw1"), "sw1"}, {at(droverInit, "sw1"), "sw1"}, {at(system, "sw1"), "sw1"},
		{at(system, "sw2"), "annex"}, {at(system, "sw1"), "annex"},
	} {
		if got := w.boot(p.Discover); got != p.want {
			t.Errorf("%+v: got pool %q, want %q", p.Discover, got, p.want)
		}
	}
}

// TestCatchAllInProxyMode is W1 where another server leases the addresses: drover's own
// note of an address is short, and each boot program ends the one before.
func TestCatchAllInProxyMode(t *testing.T) {
	w := newWire(t, pools.DHCPProxy, kinds+"  - {name: lobby, catchall: true, image: b}\n")
	other := netip.MustParseAddr("10.28.0.3")
	w.address = netip.MustParseAddr("10.28.99.7")
	for _, boot := range []struct {
		firmware pools.Firmware
		pool     string
	}{{pools.UEFIx64HTTP, "http"}, {pools.BIOS, "pc"}} {
		firmware := bootprogram.Discover{Firmware: boot.firmware}
		for _, d := range []bootprogram.Discover{firmware, ipxe(firmware), droverInit, system} {
			w.now = w.now.Add(3 * time.Minute)
			w.send(w.program(d))
			if _, x := w.send(w.request(d, other, w.address, netip.Addr{})); x.Plan == nil || x.Plan.Pool != boot.pool {
				t.Errorf("%+v: got plan %+v, want pool %s", d, x.Plan, boot.pool)
			}
			w.stays(fmt.Sprintf("%+v", d), boot.pool)
		}
	}
}

// TestNodeByUUIDBoots: only firmware and iPXE send option 97; the later programs of a node
// that is known by it are found by its lease.
func TestNodeByUUIDBoots(t *testing.T) {
	const uuid = "4c4c4544-0034-4210-8035-b4c04f4d3132"
	id, err := resolve.ParseUUID(uuid)
	if err != nil {
		t.Fatal(err)
	}
	for _, others := range []string{"", lobby} {
		w := newWire(t, pools.DHCPFull, "  - {name: web, image: a, nodes: [{name: dell, match: {uuid: "+uuid+"}, ip: 10.28.0.10}]}\n"+others)
		firmware := bootprogram.Discover{Firmware: pools.UEFIx64, UUID: id}
		loaded := ipxe(firmware)
		loaded.UUID = id
		want := ""
		if others != "" {
			want = "lobby"
		}
		if got := w.boot(system); got != want {
			t.Errorf("a system that nobody knows: got pool %q, want %q", got, want)
		}
		for _, d := range []bootprogram.Discover{firmware, loaded, droverInit, system} {
			if got := w.boot(d); got != "web" || w.address.String() != "10.28.0.10" {
				t.Errorf("%+v: got pool %q at %s", d, got, w.address)
			}
			w.stays(fmt.Sprintf("%+v", d), "web")
		}
		w.renewals("web")
		other := firmware
		other.UUID = id[:15] + "x"
		if got := w.boot(other); got != want {
			t.Errorf("the card in another machine: got pool %q, want %q", got, want)
		}
	}
}

// TestFirmwareWithShortRequest: the REQUEST of some firmware says less than its DISCOVER;
// that of early Raspberry Pi 4 had no class.
func TestFirmwareWithShortRequest(t *testing.T) {
	for _, others := range []string{"", lobby} {
		w := newWire(t, pools.DHCPFull, kinds+others)
		firmware := bootprogram.Discover{Firmware: pools.BIOS}
		offer, _ := w.send(w.program(firmware))
		if offer == nil {
			t.Fatal("no offer")
		}
		given, _ := netip.AddrFromSlice(offer.YourIPAddr.To4())
		request := w.request(firmware, serverAddress, given, netip.Addr{})
		delete(request.Options, 60)
		delete(request.Options, 93)
		if _, x := w.send(request); x.Reply != "ACK" || x.Plan.Pool != "pc" {
			t.Errorf("got %q (%q), plan %+v", x.Reply, x.Decision, x.Plan)
		}
		w.address = given
		w.stays("firmware", "pc")
	}
}

// TestCatchAllBehindARelay boots a machine behind a relay agent, whose renewals bypass it.
func TestCatchAllBehindARelay(t *testing.T) {
	w := newWire(t, pools.DHCPFull, `  - {name: sw1, catchall: true, image: a, match: {remoteID: sw1, firmware: bios}, range: 10.29.60.1-10.29.60.99}
  - {name: annex, catchall: true, image: b, range: 10.29.72.1-10.29.72.99}
`+lobby)
	relayed := func(d bootprogram.Discover) bootprogram.Discover {
		d.Relay, d.RemoteID = netip.MustParseAddr("10.29.0.254"), "sw1"
		return d
	}
	firmware := bootprogram.Discover{Firmware: pools.BIOS}
	for _, d := range []bootprogram.Discover{firmware, ipxe(firmware), droverInit, system} {
		if got := w.boot(relayed(d)); got != "sw1" {
			t.Errorf("%+v: got pool %q", d, got)
		}
		w.stays(fmt.Sprintf("%+v", d), "sw1")
	}
	none := netip.Addr{}
	for name, d := range map[string]bootprogram.Discover{"renews": system, "rebinds": relayed(system)} {
		if _, x := w.send(w.request(d, none, none, w.address)); x.Reply != "ACK" {
			t.Errorf("it %s: got %q (%q, %v)", name, x.Reply, x.Decision, x.Err)
		}
		w.stays(name, "sw1")
	}
	if _, x := w.send(w.request(system, none, w.address, none)); x.Reply != "NAK" {
		t.Errorf("it comes back on the server's wire: got %q (%q)", x.Reply, x.Decision)
	}
}
