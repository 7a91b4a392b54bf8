package dhcpd_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/packet"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/e2e/dhcptest"
	"drover/e2e/netns"
	"drover/pools"
)

// rack is a network of two namespaces: the server's with interface srv, and
// the clients' with interface cli. Nothing in it reaches the host.
type rack struct {
	t         *testing.T
	srv, cli  string // namespaces
	exchanges chan dhcp.Exchange
	last      string // what expect saw last
}

// newRack builds the namespaces. They are gone when the test ends.
func newRack(t *testing.T, programs ...string) *rack {
	t.Helper()
	netns.Need(t, programs...)
	// Tests that run side by side have racks of their own.
	id := fmt.Sprintf("drvdhcp%d%s", os.Getpid(), strings.ReplaceAll(strings.TrimPrefix(t.Name(), "Test"), "/", "-"))
	r := &rack{t: t, srv: id + "s", cli: id + "c", exchanges: make(chan dhcp.Exchange, 1000)}
	srv, cli := netns.NewNamespace(t, r.srv), netns.NewNamespace(t, r.cli)
	srv.Link(t, "srv", cli, "cli")
	srv.IP(t, "link", "set", "srv", "address", serverMAC.String())
	srv.IP(t, "addr", "add", "10.28.0.2/16", "dev", "srv")
	srv.IP(t, "link", "set", "srv", "up")
	return r
}

func (r *rack) ip(args ...string) {
	r.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		r.t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// plug gives the clients' interface the MAC, no address, and a fresh link.
func (r *rack) plug(m pools.MAC) {
	r.t.Helper()
	r.last = ""
	r.ip("-n", r.cli, "addr", "flush", "dev", "cli")
	r.ip("-n", r.cli, "link", "set", "cli", "down")
	r.ip("-n", r.cli, "link", "set", "cli", "address", m.String())
	r.ip("-n", r.cli, "link", "set", "cli", "up")
}

// plugWith is plug with an address. Packets pass when it returns; a server is necessary.
func (r *rack) plugWith(m pools.MAC, address string) {
	r.t.Helper()
	r.plug(m)
	r.ip("-n", r.cli, "addr", "add", address, "dev", "cli")
	r.reach(r.udp("0.0.0.0:68"))
}

// in runs f with the thread in a namespace. Sockets that f opens stay there.
func (r *rack) in(ns string, f func() error) {
	r.t.Helper()
	netns.Namespace(ns).In(r.t, f)
}

// serve starts a server, which reports to r.exchanges unless it has a report of its own. It has
// stopped when the test ends.
func (r *rack) serve(s *dhcpd.Server) {
	r.t.Helper()
	s.Interface = "srv"
	if s.OnExchange == nil {
		s.OnExchange = func(x dhcp.Exchange) { r.exchanges <- x }
	}
	r.in(r.srv, s.Listen)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("Serve: %v", err)
		}
	})
}

// next returns the next exchange.
func (r *rack) next() dhcp.Exchange {
	r.t.Helper()
	select {
	case x := <-r.exchanges:
		return x
	case <-time.After(2 * time.Minute):
		r.t.Fatal("the server saw nothing for two minutes")
		panic("unreachable")
	}
}

// expect wants the exchanges of one client in order, written as
// "DISCOVER OFFER". That the client asks twice is no fault: udhcpc sends a
// renewal from a socket that can swallow the answer, if that comes at once.
func (r *rack) expect(m pools.MAC, want ...string) dhcp.Exchange {
	r.t.Helper()
	var x dhcp.Exchange
	for i := 0; i < len(want); {
		x = r.next()
		got := x.Type + " " + x.Reply
		switch {
		case x.MAC != m:
			r.t.Fatalf("got %s from %s, want it from %s", got, x.MAC, m)
		case x.Err != nil:
			r.t.Fatalf("%s: %v", got, x.Err)
		case got == want[i]:
			i++
		case got != r.last:
			r.t.Fatalf("got %q, want %q", got, want[i])
		}
		r.last = got
	}
	return x
}

// udp opens a UDP socket in the clients' namespace.
func (r *rack) udp(address string) net.PacketConn {
	r.t.Helper()
	var conn net.PacketConn
	r.in(r.cli, func() (err error) {
		conn, err = net.ListenPacket("udp4", address)
		return err
	})
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

// relay plugs in a relay agent with an address and the port of one.
func (r *rack) relay() net.PacketConn {
	r.t.Helper()
	r.plug(foreign)
	r.ip("-n", r.cli, "addr", "add", "10.28.0.254/16", "dev", "cli")
	return r.udp("10.28.0.254:67")
}

// reach waits until packets pass in both directions: after a link came up the kernel can
// drop what is sent on it for a second. The server's kernel answers ARP for this one.
func (r *rack) reach(c net.PacketConn) {
	r.t.Helper()
	write(r.t, c, []byte("no DHCP"))
	if x := r.next(); x.Decision != dhcp.Malformed {
		r.t.Fatalf("got %q, want %q", x.Decision, dhcp.Malformed)
	}
}

// confirm has the server find out that the relay agent is one, so that packets after
// this one take no detour.
func (r *rack) confirm(relay net.PacketConn) {
	r.t.Helper()
	write(r.t, relay, message(nobody, discover, giaddr("10.28.0.254")).ToBytes())
	if x := r.next(); x.MAC != nobody || x.Decision != dhcp.NotOurs {
		r.t.Fatalf("got %q from %s, want %q", x.Decision, x.MAC, dhcp.NotOurs)
	}
}

// card returns a function that sends a packet in a frame of a network card, as a boot
// program does that has no address.
func (r *rack) card(m pools.MAC) func([]byte) {
	r.t.Helper()
	return r.cardAt(m, "0.0.0.0", "255.255.255.255")
}

// frames opens a socket for the frames of a protocol on the clients' wire; 0: only to send.
func (r *rack) frames(protocol int) (conn *packet.Conn) {
	r.t.Helper()
	r.in(r.cli, func() error {
		ifi, err := net.InterfaceByName("cli")
		if err != nil {
			return err
		}
		conn, err = packet.Listen(ifi, packet.Raw, protocol, nil)
		return err
	})
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

// cardAt is card with addresses of the IP header.
func (r *rack) cardAt(m pools.MAC, src, dst string) func([]byte) {
	r.t.Helper()
	conn := r.frames(0)
	to := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if dst != "255.255.255.255" {
		to = serverMAC[:]
	}
	return func(b []byte) {
		r.t.Helper()
		f := dhcpd.Frame(m[:], to, netip.AddrPortFrom(netip.MustParseAddr(src), 68), netip.AddrPortFrom(netip.MustParseAddr(dst), 67), b)
		if _, err := conn.WriteTo(f, &packet.Addr{HardwareAddr: to}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// serverMAC is that of the server's interface. No machine and no host has nobody.
var (
	serverMAC = dhcptest.MAC("02:00:00:00:00:02")
	nobody    = dhcptest.MAC("0a:00:00:00:00:99")
)

var toServer = net.UDPAddrFromAddrPort(netip.AddrPortFrom(serverAddr, 67))
