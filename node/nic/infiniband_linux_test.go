package nic

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/vishvananda/netlink"

	"drover/e2e/fixture"
	"drover/pools"
)

// portAddress is the address of an IPoIB link: flags and queue pair, subnet prefix, GUID.
var portAddress = net.HardwareAddr{0x80, 0, 2, 8, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0xab, 0xcd, 0xef}

// ibLink is an InfiniBand link. There is none without a fabric.
type ibLink struct{ netlink.Link }

func (l ibLink) Attrs() *netlink.LinkAttrs {
	a := *l.Link.Attrs()
	a.HardwareAddr = portAddress
	return &a
}

// TestFindPort: the card of an InfiniBand port is found by the MAC that its GUID is made of.
func TestFindPort(t *testing.T) {
	want := pools.MAC{0, 2, 0xc9, 0xab, 0xcd, 0xef}
	if got := macOf(portAddress); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := macOf(net.HardwareAddr(testMAC[:])); got != testMAC {
		t.Errorf("Ethernet: got %s", got)
	}
	if got := macOf(net.HardwareAddr{1, 2}); !got.IsZero() {
		t.Errorf("two bytes: got %s", got)
	}
	ethernet := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "e0", HardwareAddr: testMAC[:]}}
	port := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "ib0", HardwareAddr: portAddress}}
	bare := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "lo"}}
	if l := linkWithMAC([]netlink.Link{bare, ethernet, port}, want); l != port {
		t.Errorf("got %v", l)
	}
	if l := linkWithMAC([]netlink.Link{bare}, pools.MAC{}); l != nil {
		t.Errorf("no MAC: got %v", l)
	}
}

// TestInfiniBand: each request has hardware type 32, no hardware address, the broadcast flag
// and a client identifier that ends in the GUID (RFC 4390). The link is one of Ethernet: there
// is no fabric here.
func TestInfiniBand(t *testing.T) {
	t.Parallel()
	inNamespace(t, func(t *testing.T) {
		if !pair(t, testMAC) {
			return
		}
		var mu sync.Mutex
		seen := map[dhcpv4.MessageType]*dhcpv4.DHCPv4{}
		server, err := server4.NewServer("server0", &net.UDPAddr{Port: dhcpv4.ServerPort}, func(conn net.PacketConn, peer net.Addr, m *dhcpv4.DHCPv4) {
			mu.Lock()
			seen[m.MessageType()] = m
			mu.Unlock()
			kind := dhcpv4.MessageTypeOffer
			if m.MessageType() == dhcpv4.MessageTypeRequest {
				kind = dhcpv4.MessageTypeAck
			}
			reply, err := dhcpv4.NewReplyFromRequest(m, dhcpv4.WithMessageType(kind), dhcpv4.WithYourIP(net.IPv4(10, 77, 0, 11)),
				dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 77, 0, 1))), dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithLeaseTime(600))
			if err == nil {
				_, _ = conn.WriteTo(reply.ToBytes(), peer)
			}
		})
		if err != nil {
			t.Error(err)
			return
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = server.Serve() }) // ends with an error when it is closed
		defer wg.Wait()
		defer server.Close()
		var said fixture.Log
		n, err := Find(t.Context(), testMAC, func() {}, said.Printf)
		if err != nil {
			t.Error(err)
			return
		}
		if err := n.Up(t.Context()); err != nil {
			t.Error(err)
		}
		n.link, n.MAC = ibLink{n.link}, macOf(portAddress)
		l, err := n.dhcp(t.Context())
		if err != nil || l.Address != netip.MustParsePrefix("10.77.0.11/24") || l.For != 10*time.Minute {
			t.Errorf("got %+v, %v; it said\n%s", l, err, said.String())
		}
		mu.Lock()
		defer mu.Unlock()
		for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest} {
			m := seen[kind]
			if m == nil {
				t.Errorf("no %s", kind)
				continue
			}
			id := m.Options.Get(dhcpv4.OptionClientIdentifier)
			if m.HWType != iana.HWTypeInfiniband || len(m.ClientHWAddr) != 0 || !m.IsBroadcast() || len(id) < 15 || id[0] != 255 || !bytes.HasSuffix(id, portAddress[12:]) {
				t.Errorf("%s: got hardware type %d, address %s, identifier % x", kind, m.HWType, m.ClientHWAddr, id)
			}
		}
	})
}
