package server

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"drover/dhcp"
	"drover/e2e/dhcptest"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
	"drover/pools/resolve"
)

// farmland is the office with a node that forwards and masquerades for a pod, and with a
// router to a host of another network. Nobody in it has a MAC of the wire but the
// node, the router and the machines of the test.
type farmland struct {
	*office
	node, pod, router, routed netns.Namespace
}

const (
	nodeMAC   = "52:54:00:00:00:01"
	otherMAC  = "52:54:00:00:00:02"
	port1MAC  = "52:54:00:77:00:01"
	routerMAC = "0a:00:00:00:00:fe"
	nodeIP    = "10.28.36.1"
	podIP     = "10.244.1.2"
	routedIP  = "192.168.5.2"
	podGW     = "10.244.1.1"
)

const farmlandPools = `
  - name: web
    image: debian-12
    nodes:
      - {name: m1, macs: ["` + nodeMAC + `"], ip: ` + nodeIP + `}
      - {name: m2, macs: ["` + otherMAC + `"], ip: 10.28.36.2}
      - {name: port1, match: {remoteID: sw, circuitID: port1}, ip: 10.28.36.7}
  - {name: lobby, catchall: true, image: debian-12, range: 10.28.72.10-10.28.72.250}
`

func newFarmland(t *testing.T, head, farm string) *farmland {
	t.Helper()
	f := &farmland{office: newOfficeOf(t, head, farm)}
	f.node = f.wired("node", nodeMAC, nodeIP+"/16")
	f.pod = f.behind(f.node, "pod", podGW+"/24", podIP+"/24")
	f.router = f.wired("router", routerMAC, "10.28.0.254/16")
	f.routed = f.behind(f.router, "far", "192.168.5.1/24", routedIP+"/24")
	f.net.IP(t, "route", "add", "192.168.5.0/24", "via", "10.28.0.254")
	f.net.IP(t, "route", "add", "10.244.0.0/16", "via", nodeIP)
	return f
}

// wired puts a host on the wire, with an address, that forwards packets whatever their
// source: rp_filter is 0.
func (f *farmland) wired(name, mac, address string) netns.Namespace {
	f.t.Helper()
	n := f.host(name)
	n.IP(f.t, "link", "set", "cli", "address", mac)
	n.IP(f.t, "addr", "add", address, "dev", "cli")
	n.IP(f.t, "link", "set", "cli", "up")
	f.net.AwaitPort(f.t, name)
	forward := "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done; echo 1 >/proc/sys/net/ipv4/ip_forward"
	if out, err := n.Command("sh", "-c", forward).CombinedOutput(); err != nil {
		f.t.Fatalf("forwarding: %v: %s", err, out)
	}
	return n
}

// behind puts a host behind another, with that as its router.
func (f *farmland) behind(router netns.Namespace, name, gateway, address string) netns.Namespace {
	f.t.Helper()
	n := netns.NewNamespace(f.t, string(f.net)+name)
	router.Link(f.t, name, n, "eth0")
	router.IP(f.t, "addr", "add", gateway, "dev", name)
	router.IP(f.t, "link", "set", name, "up")
	n.IP(f.t, "addr", "add", address, "dev", "eth0")
	n.IP(f.t, "link", "set", "eth0", "up")
	n.IP(f.t, "route", "add", "default", "via", netip.MustParsePrefix(gateway).Addr().String())
	return n
}

// send sends UDP from a namespace to a port of the server with any source address, as a
// raw socket can. What a pod sends from the address of its node, the node masquerades.
func (f *farmland) send(n netns.Namespace, src string, port uint16, message *dhcpv4.DHCPv4) {
	f.t.Helper()
	if src == nodeIP {
		n = f.node
	}
	server := netip.MustParseAddr("10.28.0.2")
	packet := netns.Datagram(netip.AddrPortFrom(netip.MustParseAddr(src), 67), netip.AddrPortFrom(server, port), 64, message.ToBytes())
	n.In(f.t, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: server.As4()})
	})
}

// judged waits until the server has decided on n packets of a machine since the last
// call, and returns their decisions.
func (f *farmland) judged(mac pools.MAC, n int) (got []dhcp.Decision) {
	f.t.Helper()
	fixture.Eventually(f.t, fmt.Sprintf("%d packets in the name of %s", n, mac), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		got = nil
		for _, x := range f.seen {
			if x.MAC == mac {
				got = append(got, x.Decision)
			}
		}
		return len(got) >= n
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = nil
	return got
}

// refuses fails the test unless the server drops a packet of a host in a machine's name.
func (f *farmland) refuses(t *testing.T, host netns.Namespace, src string, port uint16, m pools.MAC, packet *dhcpv4.DHCPv4) {
	t.Helper()
	f.send(host, src, port, packet)
	for _, d := range f.judged(m, 1) {
		if d != dhcp.Spoofed {
			t.Errorf("from %s in the name of %s: got %q, want %q", src, m, d, dhcp.Spoofed)
		}
	}
}

const (
	typeDiscover = dhcpv4.MessageTypeDiscover
	typeRequest  = dhcpv4.MessageTypeRequest
	typeDecline  = dhcpv4.MessageTypeDecline
	typeRelease  = dhcpv4.MessageTypeRelease
	typeInform   = dhcpv4.MessageTypeInform
)

// TestForgedSenders has a pod of node m1, with CAP_NET_RAW and any source address, and a
// host of another network act in the name of machines (findings H1 to H4).
func TestForgedSenders(t *testing.T) {
	f := newFarmland(t, fmt.Sprintf(officeHead, true), farmlandPools)
	m1, m2, port1 := dhcptest.MAC(nodeMAC), dhcptest.MAC(otherMAC), dhcptest.MAC(port1MAC)
	stray := dhcptest.MAC("52:54:00:77:07:07")
	ours := dhcptest.ServerID(netip.MustParseAddr("10.28.0.2"))
	message, ciaddr, requested := dhcptest.Message, dhcptest.Ciaddr, dhcptest.Requested
	relayed := func(giaddr string, hops byte) dhcpv4.Modifier {
		return func(d *dhcpv4.DHCPv4) { dhcptest.Giaddr(giaddr)(d); d.HopCount = hops }
	}
	option82 := dhcptest.Option(82, append([]byte{1, 5, 'p', 'o', 'r', 't', '1', 2, 2}, "sw"...)...)
	f.leases(t, stray, "10.28.72.33")
	f.judgeNothing()

	for _, from := range []struct {
		name    string
		host    netns.Namespace
		sources []string
	}{
		{"pod", f.pod, []string{nodeIP, podIP, "10.28.0.250", "10.28.0.254", "10.28.36.2", "10.28.72.33", "10.28.0.53", "10.29.0.1"}},
		{"routed host", f.routed, []string{routedIP, "10.28.36.99", "10.29.5.5"}},
	} {
		t.Run(from.name, func(t *testing.T) {
			for _, src := range from.sources {
				for name, p := range map[string]*dhcpv4.DHCPv4{
					"H1 adoption":           message(m2, typeRequest, ciaddr("10.28.0.53")),
					"H1 adoption at source": message(m2, typeRequest, ciaddr(src)),
					"H3 request":            message(m2, typeRequest, ours, requested("10.28.36.2")),
					"H3 init-reboot":        message(m2, typeRequest, requested("10.28.72.99")),
					"H3 inform":             message(m2, typeInform, ciaddr(src)),
					"H3 release":            message(m2, typeRelease, ours, ciaddr("10.28.36.2")),
					"H4 discover":           message(m2, typeDiscover, dhcptest.ROM),
					"H4 relayed":            message(m2, typeDiscover, dhcptest.ROM, relayed("10.28.0.254", 1)),
					"H4 relayed, no hops":   message(m2, typeDiscover, dhcptest.ROM, relayed("10.28.0.254", 0)),
					"H4 own giaddr":         message(m2, typeDiscover, dhcptest.ROM, relayed(src, 1)),
					"H4 far giaddr":         message(m2, typeDiscover, dhcptest.ROM, relayed("10.29.0.1", 3)),
				} {
					if from.name == "routed host" && src != routedIP && name == "H4 far giaddr" {
						continue // a router that does not check sources, see docs/security.md
					}
					if from.name == "routed host" && src != routedIP && p.GatewayIPAddr.String() != "0.0.0.0" && p.HopCount > 0 {
						continue
					}
					t.Run(src+" "+name, func(t *testing.T) { f.refuses(t, from.host, src, 67, m2, p) })
				}
				f.refuses(t, from.host, src, 67, port1, message(port1, typeRequest, requested("10.28.36.7"), option82)) // H2
				f.refuses(t, from.host, src, 67, stray, message(stray, typeRelease, ours, ciaddr("10.28.72.33")))
				f.refuses(t, from.host, src, 67, stray, message(stray, typeDecline, ours, requested("10.28.72.33")))
				// The pod plays the firmware of its own node.
				f.refuses(t, from.host, src, 67, m1, message(m1, typeDiscover, dhcptest.ROM))
				f.refuses(t, from.host, src, 67, m1, message(m1, typeDiscover, dhcptest.ROM, relayed("10.244.1.1", 1)))
			}
		})
	}
	if got := f.lease(stray.String()); got != "10.28.72.33" {
		t.Errorf("after releases and declines of others %s has a lease of %s", stray, got)
	}
	for _, m := range []pools.MAC{m1, m2, port1} {
		if got := f.lease(m.String()); got != "none" {
			t.Errorf("%s has a lease of %s", m, got)
		}
	}
}

// leases gives a machine a lease.
func (f *farmland) leases(t *testing.T, m pools.MAC, address string) {
	t.Helper()
	p := f.server.Machines.Resolve(resolve.Query{MAC: m, Link: netip.MustParseAddr("10.28.0.2")})
	if p == nil {
		t.Fatalf("%s gets no plan", m)
	}
	if _, err := f.server.Store.Leases.Commit(p, netip.MustParseAddr(address), time.Now()); err != nil {
		t.Fatal(err)
	}
}

// judgeNothing forgets the packets so far.
func (f *farmland) judgeNothing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = nil
}

// TestFloodInAnothersName: REQUESTs of a pod in the name of another machine do not use up
// that machine's limit (finding H3).
func TestFloodInAnothersName(t *testing.T) {
	f := newFarmland(t, fmt.Sprintf(officeHead, false), farmlandPools)
	m2 := dhcptest.MAC(otherMAC)
	for range 200 {
		f.send(f.pod, nodeIP, 67, dhcptest.Message(m2, typeRequest, dhcptest.Requested("10.28.36.2")))
		f.send(f.pod, "10.28.36.2", 67, dhcptest.Message(m2, typeRequest, dhcptest.Ciaddr("10.28.36.2")))
	}
	f.judged(m2, 400)
	plug(t, f.host("m2"), netns.Udhcpc(), otherMAC).boots("10.28.36.2")
}

// TestReleasedNodeIsNoRelay: a pod releases the lease of its node, which nobody declares.
// The node is no relay agent then (finding H4).
func TestReleasedNodeIsNoRelay(t *testing.T) {
	f := newFarmland(t, fmt.Sprintf(officeHead, false), farmlandPools)
	stray := dhcptest.MAC("52:54:00:77:07:07")
	f.leases(t, stray, "10.28.72.33")
	host := f.wired("lobby", stray.String(), "10.28.72.33/16")
	f.send(host, "10.28.72.33", 67, dhcptest.Message(stray, typeRelease, dhcptest.Ciaddr("10.28.72.33")))
	if got := f.judged(stray, 1)[0]; got != dhcp.Released {
		t.Fatalf("got %q, want %q", got, dhcp.Released)
	}
	f.noRelay(t, host)
}

// TestLeasedMachineIsNoRelay: a machine that no node declares holds a lease, and forwards for a pod.
func TestLeasedMachineIsNoRelay(t *testing.T) {
	f := newFarmland(t, fmt.Sprintf(officeHead, false), farmlandPools)
	stray := dhcptest.MAC("52:54:00:77:07:07")
	f.leases(t, stray, "10.28.72.33")
	f.noRelay(t, f.wired("lobby", stray.String(), "10.28.72.33/16"))
}

// noRelay fails the test unless the server drops what a machine at 10.28.72.33 relays.
func (f *farmland) noRelay(t *testing.T, host netns.Namespace) {
	t.Helper()
	m2 := dhcptest.MAC(otherMAC)
	for _, src := range []string{"10.28.72.33", "10.28.0.250", "10.29.0.9"} {
		relayed := func(d *dhcpv4.DHCPv4) { dhcptest.Giaddr(src)(d); d.HopCount = 1 }
		f.refuses(t, host, src, 67, m2, dhcptest.Message(m2, typeDiscover, dhcptest.ROM, relayed))
	}
}

// TestAdoptsWithARP: a machine keeps the address that it runs on after the config gave it
// another, because it answers ARP for it (finding H1).
func TestAdoptsWithARP(t *testing.T) {
	f := newFarmland(t, fmt.Sprintf(officeHead, false), farmlandPools)
	m2 := dhcptest.MAC(otherMAC)
	host := f.wired("m2", otherMAC, "10.28.36.99/16")
	f.ask(host, "10.28.36.99:68", 67, dhcptest.Message(m2, typeRequest, dhcptest.Ciaddr("10.28.36.99")))
	if got := f.judged(m2, 1)[0]; got != dhcp.Acknowledged {
		t.Errorf("got %q, want %q", got, dhcp.Acknowledged)
	}
	if got := f.lease(otherMAC); got != "10.28.36.99" {
		t.Errorf("it has a lease of %s", got)
	}
}

// ask sends a packet from a socket of a host.
func (f *farmland) ask(host netns.Namespace, from string, port int, p *dhcpv4.DHCPv4) {
	f.t.Helper()
	host.In(f.t, func() error {
		c, err := net.ListenPacket("udp4", from)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.WriteTo(p.ToBytes(), &net.UDPAddr{IP: net.IPv4(10, 28, 0, 2), Port: port})
		return err
	})
}

const proxyHead = `server:
  interfaces: [srv]
  address: 10.28.0.2
  dhcp: proxy
subnets:
  - {cidr: 10.28.0.0/16, router: 10.28.0.1, lease: 1h}
pools:
`

// TestForgedProxy: in proxy mode an address is a machine's when it says so by ARP. A host
// of another network cannot, nor can a pod (finding C1).
func TestForgedProxy(t *testing.T) {
	f := newFarmland(t, proxyHead, `
  - name: web
    image: debian-12
    nodes:
      - {name: m1, macs: ["`+nodeMAC+`"], ip: `+nodeIP+`}
      - {name: p1, macs: ["`+otherMAC+`"]}
`)
	p1 := dhcptest.MAC(otherMAC)
	other := dhcptest.ServerID(netip.MustParseAddr("10.28.0.9"))
	take := func(a string) *dhcpv4.DHCPv4 {
		return dhcptest.Message(p1, typeRequest, dhcptest.ROM, other, dhcptest.Requested(a))
	}
	for _, from := range []struct {
		host netns.Namespace
		src  string
	}{{f.routed, routedIP}, {f.routed, "10.28.36.99"}, {f.pod, nodeIP}, {f.pod, podIP}, {f.pod, "10.28.36.99"}} {
		f.refuses(t, from.host, from.src, 67, p1, dhcptest.Message(p1, typeDiscover, dhcptest.ROM))
		f.refuses(t, from.host, from.src, 67, p1, take(routedIP))
		f.refuses(t, from.host, from.src, 67, p1, take(from.src))
		f.refuses(t, from.host, from.src, 67, p1, dhcptest.Message(p1, typeInform, dhcptest.Ciaddr(from.src)))
		f.refuses(t, from.host, from.src, 4011, p1, dhcptest.Message(p1, typeRequest, dhcptest.ROM, dhcptest.Ciaddr(from.src)))
	}

	// A REQUEST of its own NIC names the address of another host, which answers ARP.
	host := f.wired("p1", otherMAC, "10.28.36.50/16")
	host.Broadcast(t, "cli", take("10.28.0.254").ToBytes())
	host.Broadcast(t, "cli", take(routedIP).ToBytes())
	f.judged(p1, 2)
	if got := f.lease(otherMAC); got != "none" {
		t.Errorf("noted %s, which the machine does not have", got)
	}
	host.Broadcast(t, "cli", take("10.28.36.50").ToBytes())
	fixture.Eventually(t, "its own address is noted", func() bool { return f.lease(otherMAC) == "10.28.36.50" })
	f.judged(p1, 1)
	f.ask(host, "10.28.36.50:4011", 4011, dhcptest.Message(p1, typeRequest, dhcptest.ROM, dhcptest.Ciaddr("10.28.36.50")))
	if got := f.judged(p1, 1)[0]; got != dhcp.Acknowledged {
		t.Errorf("port 4011: got %q, want %q", got, dhcp.Acknowledged)
	}
}

// TestProxyBesideDnsmasq: with another server for addresses, drover notes the address that
// a real client takes.
func TestProxyBesideDnsmasq(t *testing.T) {
	o := newOfficeOf(t, proxyHead, `
  - name: web
    image: debian-12
    nodes: [{name: p1, macs: ["`+otherMAC+`"]}]
`, "dnsmasq", "udhcpc")
	other := o.host("dhcp")
	other.IP(t, "addr", "add", "10.28.0.9/16", "dev", "cli")
	other.IP(t, "link", "set", "cli", "up")
	other.Daemon(t, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--port=0", "--no-hosts", "--no-ping",
		"--log-facility=-", "--dhcp-leasefile="+t.TempDir()+"/leases", "--dhcp-range=10.28.99.1,10.28.99.1,255.255.0.0,1h")
	plug(t, o.host("m2"), netns.Udhcpc(), otherMAC).starts("10.28.99.1")
	fixture.Eventually(t, "the address is noted", func() bool { return o.lease(otherMAC) == "10.28.99.1" })
}
