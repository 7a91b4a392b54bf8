package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/mdlayher/packet"

	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/imagebuild"
	"drover/pools"
)

// yard is a `drover serve` process in a namespace, with several wires.
type yard struct {
	t    *testing.T
	id   string
	dir  string
	net  netns.Namespace
	log  string
	next uint32 // transaction of DHCP
}

// finderPath is that of the script that finds the script of a machine.
const finderPath = "/boot.ipxe"

const yardPools = `
pools:
  - name: web
    image: debian-12
    nodes:
      - {name: a, macs: ["52:54:00:00:77:01"], ip: 10.77.0.50}
      - {name: b, macs: ["52:54:00:00:78:01"], ip: 10.78.0.50}
      - {name: c, macs: ["52:54:00:00:79:01"], ip: 10.79.0.50}
      - {name: d, macs: ["52:54:00:00:80:01"], ip: 10.80.0.50}
`

func newYard(t *testing.T, config string) *yard {
	t.Helper()
	netns.Need(t, "curl")
	y := &yard{t: t, id: fmt.Sprintf("drvyard%d", os.Getpid()), dir: t.TempDir(), next: 1}
	y.net = netns.NewNamespace(t, y.id+"s")
	y.log = filepath.Join(y.dir, "log")
	if err := os.WriteFile(filepath.Join(y.dir, "drover.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	linkDrover(t, y.dir)
	(&storm{t: t, dir: y.dir}).image(map[string]int64{imagebuild.KernelFile: 1000, imagebuild.InitrdFile: 2000, imagebuild.SquashfsFile: 3000})
	return y
}

// start starts the server, which ends with the test.
func (y *yard) start(flags ...string) {
	y.t.Helper()
	log, err := os.Create(y.log)
	if err != nil {
		y.t.Fatal(err)
	}
	defer log.Close()
	args := append([]string{"serve", "-c", filepath.Join(y.dir, "drover.yaml"), "--state", filepath.Join(y.dir, "state")}, flags...)
	server := y.net.Command(filepath.Join(y.dir, "drover"), args...)
	server.Stderr = log
	if err := server.Start(); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		if err := server.Wait(); err != nil {
			y.t.Errorf("drover serve: %v", err)
		}
		if y.t.Failed() {
			y.t.Logf("drover said:\n%s", y.said())
		}
	})
	y.await("msg=serving ")
}

func (y *yard) said() string {
	b, _ := os.ReadFile(y.log) // no file: it has said nothing
	return string(b)
}

func (y *yard) await(text string) {
	y.t.Helper()
	fixture.Eventually(y.t, "the log line "+text, func() bool { return strings.Contains(y.said(), text) })
}

// plot is a machine on a wire of the yard.
type plot struct {
	*yard
	netns.Namespace
	mac  pools.MAC
	conn *packet.Conn
}

// wire makes a wire between an interface of the server, with an address, and a machine.
func (y *yard) wire(device, address, mac string) *plot {
	y.t.Helper()
	p := y.plot(device, mac)
	y.net.Link(y.t, device, p.Namespace, "cli")
	y.net.IP(y.t, "addr", "add", address, "dev", device)
	y.net.IP(y.t, "link", "set", device, "up")
	p.up()
	return p
}

// plot makes the namespace of a machine.
func (y *yard) plot(name, mac string) *plot {
	y.t.Helper()
	m, err := pools.ParseMAC(mac)
	if err != nil {
		y.t.Fatal(err)
	}
	return &plot{yard: y, Namespace: netns.NewNamespace(y.t, y.id+name), mac: m}
}

// up switches the card of the machine on.
func (p *plot) up() {
	p.t.Helper()
	p.IP(p.t, "link", "set", "cli", "address", p.mac.String())
	p.IP(p.t, "link", "set", "cli", "up")
	p.In(p.t, func() error {
		ifi, err := net.InterfaceByName("cli")
		if err == nil {
			p.conn, err = packet.Listen(ifi, packet.Raw, 0x0800, nil)
		}
		return err
	})
	p.t.Cleanup(func() { _ = p.conn.Close() })
}

// has gives the machine an address.
func (p *plot) has(address string) {
	p.t.Helper()
	p.IP(p.t, "addr", "add", address, "dev", "cli")
}

// discover returns a DISCOVER of firmware, or of iPXE.
func (p *plot) discover(ipxe bool) *dhcpv4.DHCPv4 {
	p.next++
	var xid dhcpv4.TransactionID
	binary.BigEndian.PutUint32(xid[:], p.next)
	m, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(p.mac[:]), dhcpv4.WithTransactionID(xid),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000")), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64)))
	if err != nil {
		p.t.Fatal(err)
	}
	if ipxe {
		m.UpdateOption(dhcpv4.OptUserClass("iPXE"))
	}
	return m
}

// answer is a DHCP answer, and the MAC that sent it.
type answer struct {
	*dhcpv4.DHCPv4
	from net.HardwareAddr
}

// receive returns the next DHCP answer to a client, unless there is none for a second.
func (p *plot) receive() (answer, bool) {
	p.t.Helper()
	b := make([]byte, 2048)
	for end := time.Now().Add(time.Second); ; {
		_ = p.conn.SetReadDeadline(end)
		n, _, err := p.conn.ReadFrom(b)
		if err != nil {
			return answer{}, false
		}
		const ip, udp, data = 14, 34, 42
		if n < data || b[ip+9] != 17 || binary.BigEndian.Uint16(b[udp+2:]) != 68 {
			continue
		}
		if m, err := dhcpv4.FromBytes(b[data:n]); err == nil && m.OpCode == dhcpv4.OpcodeBootReply {
			return answer{m, slices.Clone(net.HardwareAddr(b[6:12]))}, true
		}
	}
}

// offered sends DISCOVERs until an OFFER is as it should be.
func (p *plot) offered(what string, ipxe bool, good func(answer) bool) {
	p.t.Helper()
	fixture.Eventually(p.t, "an OFFER "+what, func() bool {
		m := p.discover(ipxe)
		p.Broadcast(p.t, "cli", m.ToBytes())
		for a, ok := p.receive(); ok; a, ok = p.receive() {
			if a.TransactionID == m.TransactionID {
				return good(a)
			}
		}
		return false
	})
}

// curl gets a URL, and fails the test if it cannot.
func (p *plot) curl(url string) string {
	p.t.Helper()
	out, err := p.Command("curl", "-sS", "--fail", "--max-time", "30", url).CombinedOutput()
	if err != nil {
		p.t.Errorf("%s: %v: %s", url, err, out)
	}
	return string(out)
}

// bootsFrom checks that firmware, iPXE and GRUB of the machine get everything from a
// server, and see no address of another one.
func (p *plot) bootsFrom(server, address string, others ...string) {
	p.t.Helper()
	from := net.ParseIP(server)
	p.offered("from "+server, false, func(a answer) bool {
		return a.ServerIPAddr.Equal(from) && a.ServerIdentifier().Equal(from) && a.TFTPServerName() == server && a.YourIPAddr.String() == address
	})
	script := "http://" + server + pools.ScriptPath + p.mac.Dashed()
	p.offered("with "+script, true, func(a answer) bool { return a.BootFileNameOption() == script && a.ServerIPAddr.Equal(from) })
	p.has(address + "/16")
	text := p.curl(script)
	fixture.WantText(p.t, "the script", text, "drover.url=http://"+server+" ")
	finder := p.curl("http://" + server + finderPath)
	fixture.WantText(p.t, "the script for all machines", finder, "http://"+server+"/")
	grub := p.curl("tftp://" + server + "/grub/grub.cfg")
	fixture.WantText(p.t, "GRUB's file", grub, "(tftp,"+server+")")
	for _, other := range others {
		for what, text := range map[string]string{"the script": text, "the script for all": finder, "GRUB's file": grub} {
			fixture.WantNoText(p.t, what, text, other)
		}
	}
	kernel := stormKernel.FindString(text)
	if got := len(p.curl("http://" + server + kernel)); got != 1000 {
		p.t.Errorf("the kernel by HTTP has %d bytes", got)
	}
	if got := len(p.curl("tftp://" + server + kernel)); got != 1000 {
		p.t.Errorf("the kernel by TFTP has %d bytes", got)
	}
}

// silentTFTP checks that a request to one address of the server gets no answer until one to
// another address has it.
func (p *plot) silentTFTP(silent, answers string) {
	p.t.Helper()
	p.IP(p.t, "route", "add", answers, "via", silent)
	var to [2]*net.UDPConn
	p.In(p.t, func() (err error) {
		for i, a := range []string{silent, answers} {
			if err == nil {
				to[i], err = net.ListenUDP("udp4", nil)
			}
			if err == nil {
				_, err = to[i].WriteToUDP([]byte("\x00\x01none\x00octet\x00"), &net.UDPAddr{IP: net.ParseIP(a), Port: 69})
			}
		}
		return err
	})
	defer to[0].Close()
	defer to[1].Close()
	b := make([]byte, 600)
	_ = to[1].SetReadDeadline(time.Now().Add(time.Minute))
	if _, _, err := to[1].ReadFrom(b); err != nil {
		p.t.Errorf("TFTP at %s: %v", answers, err)
	}
	_ = to[0].SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, _, err := to[0].ReadFrom(b); err == nil {
		p.t.Errorf("TFTP answers at %s: %q", silent, b[:n])
	}
}

// TestTwoBootNetworks: the machines of each network boot from the address that the server
// has there. The others of the host's addresses do not answer. (facts: server identifier of
// the interface, but next-server, option 66 and all URLs were those of the first network.)
func TestTwoBootNetworks(t *testing.T) {
	y := newYard(t, `server: {interfaces: [eth1, eth2], arpProbe: false, clients: [192.168.9.0/24]}
subnets: [{cidr: 10.77.0.0/16}, {cidr: 10.78.0.0/16}, {cidr: 10.79.0.0/16, router: 10.79.0.1}, {cidr: 10.80.0.0/16, address: 10.80.0.9}]`+yardPools)
	a := y.wire("eth1", "10.77.0.1/16", "52:54:00:00:77:01")
	b := y.wire("eth2", "10.78.0.1/16", "52:54:00:00:78:01")
	y.net.IP(t, "addr", "add", "10.80.0.9/32", "dev", "lo")
	office := y.wire("mgmt", "192.168.9.1/24", "52:54:00:00:09:01")
	office.has("192.168.9.2/24")
	y.start()
	a.bootsFrom("10.77.0.1", "10.77.0.50", "10.78.0.1")
	b.bootsFrom("10.78.0.1", "10.78.0.50", "10.77.0.1")

	// No boot network: nothing listens there.
	if out, err := office.Command("curl", "-sS", "--max-time", "30", "http://192.168.9.1/").CombinedOutput(); err == nil || !strings.Contains(string(out), "refused") && !strings.Contains(string(out), "connect to server") {
		t.Errorf("HTTP at an address of no boot network: %v: %s", err, out)
	}
	office.silentTFTP("192.168.9.1", "10.77.0.1")
	t.Run("relayed", func(t *testing.T) {
		// The server has no address in the first network of the relay agent, and a configured
		// one in the other.
		a.IP(t, "link", "set", "cli", "address", "02:00:00:00:00:fe") // a node is no relay agent
		a.has("10.77.0.254/16")
		for i, tt := range []struct{ mac, giaddr, server string }{
			{"52:54:00:00:79:01", "10.79.0.1", "10.77.0.1"},
			{"52:54:00:00:80:01", "10.80.0.1", "10.80.0.9"},
		} {
			gi := netip.MustParseAddr(tt.giaddr)
			a.has(tt.giaddr + "/32")
			y.net.IP(t, "route", "add", tt.giaddr, "via", "10.77.0.254")
			mac, err := net.ParseMAC(tt.mac)
			if err != nil {
				t.Fatal(err)
			}
			var relay *net.UDPConn
			a.In(t, func() (err error) {
				relay, err = net.ListenUDP("udp4", &net.UDPAddr{IP: gi.AsSlice(), Port: 67})
				return err
			})
			fixture.Eventually(t, "a relayed OFFER from "+tt.server, func() bool {
				m := a.discover(false)
				m.ClientHWAddr, m.HopCount, m.GatewayIPAddr = mac, 1, gi.AsSlice()
				if _, err := relay.WriteToUDP(m.ToBytes(), &net.UDPAddr{IP: net.IPv4(10, 77, 0, 1), Port: 67}); err != nil {
					t.Fatal(err)
				}
				_ = relay.SetReadDeadline(time.Now().Add(time.Second))
				b := make([]byte, 2048)
				n, _, err := relay.ReadFrom(b)
				if err != nil {
					return false
				}
				offer, err := dhcpv4.FromBytes(b[:n])
				return err == nil && offer.ServerIPAddr.String() == tt.server && offer.ServerIdentifier().String() == tt.server && offer.TFTPServerName() == tt.server
			})
			if err := relay.Close(); err != nil {
				t.Error(i, err)
			}
		}
	})
}

// TestProxyOnTwoWires: proxyDHCP names the address of the wire, without any declared subnet.
func TestProxyOnTwoWires(t *testing.T) {
	y := newYard(t, `server: {interfaces: [eth1, eth2], dhcp: proxy}
pools: [{name: all, catchall: true, image: debian-12}]
`)
	wires := map[string]*plot{
		"10.77.0.1": y.wire("eth1", "10.77.0.1/16", "52:54:00:00:77:01"),
		"10.78.0.1": y.wire("eth2", "10.78.0.1/16", "52:54:00:00:78:01"),
	}
	y.start()
	for server, p := range wires {
		p.offered("from "+server, false, func(a answer) bool {
			return a.ServerIPAddr.String() == server && a.ServerIdentifier().String() == server && a.TFTPServerName() == server
		})
		script := "http://" + server + pools.ScriptPath + p.mac.Dashed()
		p.offered("with "+script, true, func(a answer) bool { return a.BootFileNameOption() == script })
	}
}

// TestInterfaceComesLater: an interface that comes after the start is served, and again with
// another address, with another MAC, and when another one takes its name.
func TestInterfaceComesLater(t *testing.T) {
	y := newYard(t, `server: {interfaces: [eth1, eth2], arpProbe: false}
subnets: [{cidr: 10.77.0.0/16}, {cidr: 10.78.0.0/16}, {cidr: 10.79.0.0/16}, {cidr: 10.80.0.0/16}]`+yardPools)
	y.start() // without any of its interfaces
	y.await("interface=eth1 err=")
	y.wire("eth1", "10.77.0.1/16", "52:54:00:00:77:01").bootsFrom("10.77.0.1", "10.77.0.50")
	b := y.wire("eth2", "10.78.0.1/16", "52:54:00:00:78:01")
	b.bootsFrom("10.78.0.1", "10.78.0.50")

	from := func(server, mac string) func(answer) bool {
		return func(a answer) bool {
			return a.ServerIPAddr.String() == server && a.ServerIdentifier().String() == server && (mac == "" || a.from.String() == mac)
		}
	}
	y.net.IP(t, "addr", "add", "10.78.0.2/16", "dev", "eth2")
	y.net.IP(t, "addr", "del", "10.78.0.1/16", "dev", "eth2")
	if exec.Command("ip", "-n", string(y.net), "addr", "replace", "10.78.0.2/16", "dev", "eth2").Run() != nil { // the kernel may have removed it as a secondary one
		t.Fatal("no address")
	}
	b.offered("from the new address", false, from("10.78.0.2", ""))
	fixture.Eventually(t, "an answer of HTTP at the new address", func() bool {
		return b.Command("curl", "-sS", "--fail", "--max-time", "10", "http://10.78.0.2"+finderPath).Run() == nil
	})

	y.net.IP(t, "link", "set", "eth2", "address", "02:00:00:00:00:99")
	b.offered("from the new MAC", false, from("10.78.0.2", "02:00:00:00:00:99"))

	y.net.IP(t, "link", "del", "eth2")
	y.net.Link(t, "eth2", b.Namespace, "cli")
	y.net.IP(t, "addr", "add", "10.78.0.3/16", "dev", "eth2")
	y.net.IP(t, "link", "set", "eth2", "up")
	b.up()
	b.offered("from another interface of the name", false, from("10.78.0.3", ""))
}

// TestTwoInterfacesOnOneWire: each DISCOVER gets one OFFER.
func TestTwoInterfacesOnOneWire(t *testing.T) {
	y := newYard(t, `server: {interfaces: [eth1, eth2], arpProbe: false}
subnets: [{cidr: 10.77.0.0/16}, {cidr: 10.78.0.0/16}, {cidr: 10.79.0.0/16}, {cidr: 10.80.0.0/16}]`+yardPools)
	p := y.plot("p", "52:54:00:00:77:01")
	p.IP(t, "link", "add", "cli", "address", p.mac.String(), "type", "bridge", "forward_delay", "0")
	for i, device := range []string{"eth1", "eth2"} {
		y.net.Link(t, device, p.Namespace, "port"+device)
		p.IP(t, "link", "set", "port"+device, "master", "cli", "up")
		y.net.IP(t, "addr", "add", fmt.Sprintf("10.77.0.%d/16", i+1), "dev", device)
		y.net.IP(t, "link", "set", device, "up")
	}
	p.up()
	y.start("--log-level", "debug") // for what is dropped
	p.offered("at all", false, func(answer) bool { return true })
	const twice = `decision="ignored: answered on another interface"`
	y.await(twice)
	const count, dropped = 20, `decision="dropped: ` // a client asks too often, or its packet waited too long
	offers, sent := map[dhcpv4.TransactionID]int{}, 0
	fixture.Eventually(t, "the OFFERs", func() bool {
		m := p.discover(false)
		p.Broadcast(t, "cli", m.ToBytes())
		sent++
		for a, ok := p.receive(); ok; a, ok = p.receive() {
			if offers[a.TransactionID]++; a.TransactionID == m.TransactionID {
				break
			}
		}
		return len(offers) >= count
	})
	for a, ok := p.receive(); ok; a, ok = p.receive() {
		offers[a.TransactionID]++
	}
	if n := strings.Count(y.said(), dropped); sent-len(offers) > n {
		t.Errorf("%d of %d DISCOVERs have no OFFER, and %d packets were dropped", sent-len(offers), sent, n)
	}
	for xid, n := range offers {
		if n != 1 {
			t.Errorf("%d OFFERs to transaction %x, want one", n, xid)
		}
	}
}

// TestVLANOnBond: DHCP is served on a VLAN of a bond, beside the bond itself, and each
// packet is answered once.
func TestVLANOnBond(t *testing.T) {
	netns.NeedLinks(t, "bond", "vlan")
	y := newYard(t, `server: {interfaces: [bond0, bond0.77], arpProbe: false}
subnets: [{cidr: 10.77.0.0/16}, {cidr: 10.78.0.0/16}, {cidr: 10.79.0.0/16}, {cidr: 10.80.0.0/16}]`+yardPools)
	y.net.IP(t, "link", "add", "bond0", "type", "bond", "mode", "active-backup", "miimon", "50")
	p := y.plot("p", "52:54:00:00:77:01")
	y.net.Link(t, "port", p.Namespace, "trunk")
	y.net.IP(t, "link", "set", "port", "master", "bond0")
	y.net.IP(t, "link", "add", "link", "bond0", "name", "bond0.77", "type", "vlan", "id", "77")
	p.IP(t, "link", "add", "link", "trunk", "name", "cli", "type", "vlan", "id", "77")
	y.net.IP(t, "addr", "add", "10.78.0.1/16", "dev", "bond0")
	y.net.IP(t, "addr", "add", "10.77.0.1/16", "dev", "bond0.77")
	for _, device := range []string{"port", "bond0", "bond0.77"} {
		y.net.IP(t, "link", "set", device, "up")
	}
	p.IP(t, "link", "set", "trunk", "up")
	p.up()
	y.start()
	p.bootsFrom("10.77.0.1", "10.77.0.50", "10.78.0.1")
	if strings.Contains(y.said(), "interface=bond0 ") && strings.Contains(y.said(), "was not sent by its machine") {
		t.Error("the bond has seen packets of the VLAN")
	}
}
