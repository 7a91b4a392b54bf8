package dhcp6d_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
)

// has waits until the interface of a host has an address, or has it no more.
func (r *rack) has(n netns.Namespace, address string, want bool) {
	r.Helper()
	fixture.Eventually(r, "address "+address, func() bool {
		out, err := n.Command("ip", "-6", "addr", "show", "dev", "cli").CombinedOutput()
		return err == nil && strings.Contains(string(out), " "+address+"/") == want
	})
}

// TestRealClients: each client takes an address, renews it, rebinds it with another server
// after its own has gone. dhclient releases it.
func TestRealClients(t *testing.T) {
	for _, kind := range []netns.Kind{netns.Dhclient6(), netns.Dhcpcd6(), netns.Networkd6()} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			for _, tt := range []struct{ name, short, mac, address string }{
				{"a node", "n", m1, "fd00:28::10"}, {"a stranger", "s", stray, "fd00:28::100"},
			} {
				if tt.mac == stray && kind.Program != "dhclient" {
					continue // the range is the same for all; each client takes a minute
				}
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					r := newRack(t, tt.short+kind.Name[:4], kind.Program)
					r.bridge()
					r.lease = kind.Lease
					stop := r.serve(1)
					c := netns.Client{Kind: kind, Namespace: r.host("port1", tt.mac), Device: "cli", Dir: t.TempDir()}
					c.Start(t)
					r.expect(tt.mac, "REQUEST REPLY") // of two workers the second may be the first to tell
					r.has(c.Namespace, tt.address, true)
					r.expect(tt.mac, "RENEW REPLY")
					r.rebinds(tt.mac, stop)
					r.has(c.Namespace, tt.address, true)
					if kind.Program == "dhclient" { // the others send no RELEASE when they are told to end
						r.expect(tt.mac, "RENEW REPLY") // it has stored the second server's identifier
						c.Release(t)
						r.expect(tt.mac, "RELEASE REPLY")
					}
				})
			}
		})
	}
}

// rebinds gives a machine another server, and waits until it rebinds its lease there. A client has a
// few seconds for that; on a host without time for it the lease ends before, and it begins again
// at the new server, which then goes too.
func (r *rack) rebinds(mac string, stop func()) {
	r.Helper()
	for server := range byte(5) {
		stop()
		stop = r.serve(2 + server)
		if r.first(mac, "REBIND REPLY", "REQUEST REPLY") == "REBIND REPLY" {
			return
		}
		r.Logf("%s did not rebind at server %d in time", mac, 2+server)
		r.expect(mac, "RENEW REPLY")
	}
	r.Fatalf("%s rebinds at no server", mac)
}

// behindRelay returns a namespace of machine m3, with dhcrelay -6 between it and the server.
func (r *rack) behindRelay() netns.Namespace {
	r.Helper()
	relay := netns.NewNamespace(r, string(r.net)+"r")
	r.net.Link(r, "relay", relay, "uplink")
	r.net.IP(r, "link", "set", "relay", "master", "srv", "up")
	relay.IP(r, "addr", "add", "fd00:28::fe/64", "dev", "uplink", "nodad")
	relay.IP(r, "link", "set", "up", "uplink")
	port := netns.NewNamespace(r, string(r.net)+"p")
	relay.Link(r, "port", port, "cli")
	relay.IP(r, "addr", "add", "fd00:29::1/64", "dev", "port", "nodad")
	relay.IP(r, "link", "set", "up", "port")
	port.IP(r, "link", "set", "cli", "address", m3, "up")
	r.linkLocal(relay, "uplink")
	r.linkLocal(relay, "port")
	r.linkLocal(port, "cli")
	relay.Daemon(r.T, "dhcrelay", "-6", "-d", "--no-pid", "-I", "-l", "port", "-u", "fd00:28::2%uplink")
	return port
}

// TestISCRelay has dhcrelay -6 between a machine and the server.
func TestISCRelay(t *testing.T) {
	r := newRack(t, "relay", "dhcrelay", "dhclient")
	r.bridge()
	r.serve(1)
	port := r.behindRelay()
	c := netns.Client{Kind: netns.Dhclient6(), Namespace: port, Device: "cli", Dir: t.TempDir()}
	c.Start(t)
	r.expect(m3, "REQUEST REPLY")
	r.has(port, "fd00:29::10", true)
}

// TestISCRelayForged: a program without privileges on a machine asks dhcrelay by unicast, as a
// pod does. It is neither the machine's firmware nor another machine.
func TestISCRelayForged(t *testing.T) {
	r := newRack(t, "forged", "dhcrelay")
	r.bridge()
	r.serve(1)
	port := r.behindRelay()
	port.IP(t, "addr", "add", "fd00:29::10/64", "dev", "cli", "nodad")
	firmware := func(mac string) *dhcpv6.Message {
		m, err := pools.ParseMAC(mac)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dhcpv6.NewSolicit(m[:], dhcpv6.WithOption(dhcpv6.OptClientArchType(iana.EFI_X86_64)))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	victim := firmware(m1)
	relayed, err := dhcpv6.EncapsulateRelay(victim, dhcpv6.MessageTypeRelayForward, net.ParseIP("fd00:28::1"), net.ParseIP("fe80::1"))
	if err != nil {
		t.Fatal(err)
	}
	relayed.AddOption(dhcpv6.OptClientLinkLayerAddress(iana.HWTypeEthernet, net.HardwareAddr{0x52, 0x54, 0, 0x99, 0, 1}))
	var conn *net.UDPConn
	port.In(t, func() (err error) {
		conn, err = net.ListenUDP("udp6", &net.UDPAddr{IP: net.ParseIP("fd00:29::10")})
		return err
	})
	defer conn.Close()
	for _, tt := range []struct {
		name string
		msg  dhcpv6.DHCPv6
		mac  string
		why  string
	}{
		{"its own firmware", firmware(m3), m3, "did not receive it from a link-local address"},
		{"a relay agent", relayed, m1, "from a relay agent behind another one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got dhcp.Exchange
			fixture.Eventually(t, "an exchange of "+tt.mac, func() bool { // dhcrelay may not listen yet
				if _, err := conn.WriteTo(tt.msg.ToBytes(), &net.UDPAddr{IP: net.ParseIP("fd00:29::1"), Port: dhcpv6.DefaultServerPort}); err != nil {
					t.Log(err)
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				i := slices.IndexFunc(r.seen, func(x dhcp.Exchange) bool { return x.MAC.String() == tt.mac })
				if i >= 0 {
					got = r.seen[i]
				}
				return i >= 0
			})
			if got.Decision != dhcp.Spoofed || !strings.Contains(got.Why, tt.why) {
				t.Errorf("got %q (%s), want the reason %q", got.Decision, got.Why, tt.why)
			}
		})
	}
}

// TestReportFirst: a machine that has an answer is one whose boot has begun, however long the
// report takes.
func TestReportFirst(t *testing.T) {
	r := newRack(t, "first")
	r.bridge()
	reports := make(chan dhcp.Exchange, 100)
	r.serveTo(1, func(x dhcp.Exchange) {
		time.Sleep(50 * time.Millisecond)
		reports <- x
	})
	port := r.host("port1", m1)
	mac, err := pools.ParseMAC(m1)
	if err != nil {
		t.Fatal(err)
	}
	solicit, err := dhcpv6.NewSolicit(mac[:])
	if err != nil {
		t.Fatal(err)
	}
	var conn *net.UDPConn
	port.In(t, func() (err error) {
		conn, err = net.ListenUDP("udp6", &net.UDPAddr{Port: dhcpv6.DefaultClientPort})
		return err
	})
	defer conn.Close()
	fixture.Eventually(t, "an answer", func() bool { // what is sent while the link comes up can be lost
		if _, err := conn.WriteTo(solicit.ToBytes(), &net.UDPAddr{IP: dhcpv6.AllDHCPRelayAgentsAndServers, Port: dhcpv6.DefaultServerPort, Zone: "cli"}); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err := conn.Read(make([]byte, 2000))
		return err == nil
	})
	select {
	case x := <-reports:
		if x.MAC != mac || x.Reply != "ADVERTISE" {
			t.Errorf("got %s of %s, want the ADVERTISE of %s", x.Reply, x.MAC, mac)
		}
	default:
		t.Error("the ADVERTISE was sent before its exchange was reported")
	}
}

// TestLateAddress: a relay agent asks at an address that another interface of the host gets
// while the server runs, such as one of keepalived.
func TestLateAddress(t *testing.T) {
	r := newRack(t, "late")
	r.bridge()
	r.serve(1)
	relay := r.host("relay", "52:54:00:aa:00:01")
	relay.IP(t, "addr", "add", "fd00:28::fe/64", "dev", "cli", "nodad")
	relay.IP(t, "route", "add", "fd00:28::99/128", "via", "fd00:28::2")
	mac, err := pools.ParseMAC(m3)
	if err != nil {
		t.Fatal(err)
	}
	solicit, err := dhcpv6.NewSolicit(mac[:])
	if err != nil {
		t.Fatal(err)
	}
	packet, err := dhcpv6.EncapsulateRelay(solicit, dhcpv6.MessageTypeRelayForward, net.ParseIP("fd00:29::1"), net.ParseIP("fe80::1"))
	if err != nil {
		t.Fatal(err)
	}
	packet.AddOption(dhcpv6.OptClientLinkLayerAddress(iana.HWTypeEthernet, mac[:]))
	var conn *net.UDPConn
	relay.In(t, func() (err error) {
		conn, err = net.ListenUDP("udp6", &net.UDPAddr{IP: net.ParseIP("fd00:28::fe"), Port: dhcpv6.DefaultServerPort})
		return err
	})
	defer conn.Close()
	ask := func(to string) {
		t.Helper()
		fixture.Eventually(t, "an answer of "+to, func() bool {
			if _, err := conn.WriteTo(packet.ToBytes(), &net.UDPAddr{IP: net.ParseIP(to), Port: dhcpv6.DefaultServerPort}); err != nil {
				t.Log(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			_, err := conn.Read(make([]byte, 2000))
			return err == nil
		})
	}
	ask("fd00:28::2") // the server runs
	r.net.IP(t, "link", "add", "vip", "type", "bridge")
	r.net.IP(t, "addr", "add", "fd00:28::99/128", "dev", "vip", "nodad")
	r.net.IP(t, "link", "set", "vip", "up")
	ask("fd00:28::99")
}
