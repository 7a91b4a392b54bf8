package nic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/pools"
)

// inNamespace runs f in a network namespace of its own. The thread of f is never
// unlocked, so that it ends, and the namespace with it.
func inNamespace(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		runtime.LockOSThread()
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			f(t)
		}
	})
	wg.Wait()
	if err != nil {
		fixture.Missing(t, fmt.Errorf("needs root, to make a network namespace: %w", err))
	}
}

var testMAC = pools.MAC{0x52, 0x54, 0, 0x77, 0, 1}

// dhcpServer answers on a link, and records the requests.
type dhcpServer struct {
	mu   sync.Mutex
	seen []string // message types, client addresses, classes and client identifiers
}

func (s *dhcpServer) handle(conn net.PacketConn, peer net.Addr, req *dhcpv4.DHCPv4) {
	s.mu.Lock()
	defer s.mu.Unlock()
	packet := strings.Join([]string{req.MessageType().String(), "of", req.ClientIPAddr.String(), req.ClassIdentifier(),
		net.HardwareAddr(req.Options.Get(dhcpv4.OptionClientIdentifier)).String()}, " ")
	if !slices.Contains(s.seen, packet) { // a repeated packet: this machine is busy
		s.seen = append(s.seen, packet)
	}
	kind := dhcpv4.MessageTypeOffer
	if req.MessageType() == dhcpv4.MessageTypeRequest {
		kind = dhcpv4.MessageTypeAck
	}
	reply, err := dhcpv4.NewReplyFromRequest(req, dhcpv4.WithMessageType(kind),
		dhcpv4.WithYourIP(net.IPv4(10, 79, 7, 11)), dhcpv4.WithServerIP(net.IPv4(10, 79, 7, 1)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 79, 7, 1))),
		dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithRouter(net.IPv4(10, 79, 8, 1)),
		dhcpv4.WithLeaseTime(300), dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{5, 120}))
	if err != nil {
		return
	}
	_, _ = conn.WriteTo(reply.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: 68})
}

// serveDHCP makes a pair of links, serves DHCP on one, and returns the MAC of the other.
func serveDHCP(t *testing.T, s *dhcpServer) (pools.MAC, func()) {
	mac := pools.MAC{0x52, 0x54, 0, 0x79, 7, 1}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "server0", MTU: 1500}, PeerName: "node0", PeerHardwareAddr: mac[:]}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	addr, err := netlink.ParseAddr("10.79.7.1/24")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(veth, addr); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		t.Fatal(err)
	}
	server, err := server4.NewServer("server0", &net.UDPAddr{Port: 67}, s.handle)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve() }) // ends with an error when it is closed
	return mac, func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

func TestNetwork(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		server := &dhcpServer{}
		mac, stop := serveDHCP(t, server)
		defer stop()
		var said fixture.Log
		n, err := Find(t.Context(), mac, func() {}, said.Printf)
		if err != nil {
			t.Error(err)
			return
		}
		if err := n.Up(t.Context()); err != nil {
			t.Error(err)
		}
		l, err := n.dhcp(t.Context())
		if err != nil {
			t.Errorf("dhcp: %v", err)
			return
		}
		if err := n.configure(l); err != nil {
			t.Error(err)
		}
		wantLink(t, n.Name, 1400, "10.79.7.11/24", "10.79.8.1") // the router is outside of the subnet
		if l.For != 5*time.Minute {
			t.Errorf("lease: got %v, want 5m", l.For)
		}
		again, err := n.Renew(t.Context(), l)
		if err != nil || again.Address != l.Address {
			t.Errorf("renew: got %v, %v, want %v", again.Address, err, l.Address)
		}
		if err := n.Down(); err != nil {
			t.Error(err)
		}
		wantLink(t, n.Name, 1500, "", "")
		const from = " drover-init 01:52:54:00:79:07:01"
		server.mu.Lock()
		defer server.mu.Unlock()
		if want := []string{"DISCOVER of 0.0.0.0" + from, "REQUEST of 0.0.0.0" + from, "REQUEST of 10.79.7.11" + from}; !slices.Equal(server.seen, want) {
			t.Errorf("the server got %q, want %q", server.seen, want)
		}
		if said.String() != "" {
			t.Errorf("it complained: %s", &said)
		}
	})
}

// wantLink checks a link's MTU, its one IPv4 address and its default route.
func wantLink(t *testing.T, name string, mtu int, address, router string) {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Error(err)
		return
	}
	addrs, err := netlink.AddrList(l, netlink.FAMILY_V4)
	if err != nil {
		t.Error(err)
	}
	var got []string
	for _, a := range addrs {
		got = append(got, a.IPNet.String())
	}
	if strings.Join(got, " ") != address {
		t.Errorf("addresses: got %q, want %q", got, address)
	}
	routes, err := netlink.RouteList(l, netlink.FAMILY_V4)
	if err != nil {
		t.Error(err)
	}
	via := ""
	for _, r := range routes {
		if r.Gw != nil {
			via = r.Gw.String()
		}
	}
	if via != router {
		t.Errorf("default route: got via %q, want %q", via, router)
	}
	if l.Attrs().MTU != mtu {
		t.Errorf("MTU: got %d, want %d", l.Attrs().MTU, mtu)
	}
	if up := l.Attrs().Flags&net.FlagUp != 0; up != (address != "") {
		t.Errorf("up: got %v", up)
	}
}

func TestNetworkErrors(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		plugged := 0
		_, err := Find(ctx, testMAC, func() { plugged++ }, t.Logf)
		if want := "no network card has MAC 52:54:00:77:00:01"; err == nil || err.Error() != want {
			t.Errorf("no card: got %v, want %q", err, want)
		}
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other0"}, PeerName: "node0", PeerHardwareAddr: testMAC[:]}
		if err := netlink.LinkAdd(veth); err != nil {
			t.Error(err)
			return
		}
		n, err := Find(t.Context(), testMAC, func() {}, t.Logf)
		if err != nil {
			t.Error(err)
			return
		}
		ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := n.Up(ctx); err == nil || err.Error() != "node0 has no carrier" { // its peer is down
			t.Errorf("no carrier: got %v", err)
		}
		bad := Lease{Address: netip.MustParsePrefix("10.0.0.1/24"), Routes: []Route{{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.0.0.1")}}}
		if err := n.configure(bad); err == nil || !strings.Contains(err.Error(), "route 0.0.0.0/0 via 10.0.0.1") {
			t.Errorf("route over itself: got %v", err)
		}
	})
}

// TestWhole: a list that changes while it is read is read again, a few times.
func TestWhole(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name  string
		errs  []error // of the first calls
		calls int
		want  error
	}{
		{"whole", nil, 1, nil},
		{"interrupted twice", []error{netlink.ErrDumpInterrupted, netlink.ErrDumpInterrupted}, 3, nil},
		{"interrupted always", slices.Repeat([]error{netlink.ErrDumpInterrupted}, 20), 10, netlink.ErrDumpInterrupted},
		{"another error", []error{broken}, 1, broken},
	} {
		calls := 0
		got, err := whole(func() ([]int, error) {
			calls++
			if calls <= len(tt.errs) {
				return nil, tt.errs[calls-1]
			}
			return []int{calls}, nil
		})
		if calls != tt.calls || !errors.Is(err, tt.want) || err == nil && got[0] != calls {
			t.Errorf("%s: got %v, %v after %d calls, want %d calls and %v", tt.name, got, err, calls, tt.calls, tt.want)
		}
	}
}
