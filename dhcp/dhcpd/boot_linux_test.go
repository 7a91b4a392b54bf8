package dhcpd_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/pools"
)

// TestBootPort is port 4011 of proxy mode: the answer goes to where the request
// came from, and comes from where that went.
func TestBootPort(t *testing.T) {
	r := newRack(t)
	s, _ := newProxy()
	s.Farm = panicky{}
	r.serve(s)
	as := func(m pools.MAC) {
		t.Helper()
		r.plug(m)
		r.ip("-n", r.cli, "addr", "add", "10.28.5.5/16", "dev", "cli")
	}
	as(web1)
	conn := r.udp("10.28.5.5:1068")
	bootServer := net.UDPAddrFromAddrPort(netip.AddrPortFrom(serverAddr, 4011))
	ask := func(b []byte) {
		t.Helper()
		if _, err := conn.WriteTo(b, bootServer); err != nil {
			t.Fatal(err)
		}
	}
	answered := func() {
		t.Helper()
		ask(message(web1, request, rom, ciaddr("10.28.5.5")).ToBytes())
		b := make([]byte, 1500)
		conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			t.Fatal(err)
		}
		p, err := dhcpv4.FromBytes(b[:n])
		if err != nil {
			t.Fatal(err)
		}
		if p.MessageType() != dhcpv4.MessageTypeAck || p.BootFileName == "" || from.String() != bootServer.String() {
			t.Errorf("from %s got %s", from, p.Summary())
		}
		if x := r.next(); x.MAC != web1 || x.Reply != "ACK" || x.Err != nil {
			t.Errorf("got reply %q, error %v", x.Reply, x.Err)
		}
	}
	answered()
	for _, tt := range []struct {
		name   string
		mac    pools.MAC
		packet []byte
		want   dhcp.Decision
	}{
		{"nothing", web1, nil, dhcp.Malformed},
		{"rubbish", web1, bytes.Repeat([]byte{0xff}, 500), dhcp.Malformed},
		{"huge", web1, make([]byte, 8000), dhcp.Malformed},
		{"in the name of another machine", web1, message(stray, request, rom, ciaddr("10.28.5.5")).ToBytes(), dhcp.Spoofed},
		{"panic", foreign, message(foreign, request, rom, ciaddr("10.28.5.5")).ToBytes(), dhcp.Failed},
	} {
		as(tt.mac)
		ask(tt.packet)
		if x := r.next(); x.Decision != tt.want || x.Err == nil && x.Why == "" {
			t.Errorf("%s: got %q, error %v, want %q", tt.name, x.Decision, x.Err, tt.want)
		}
	}
	as(web1)
	answered()
	as(stray)
	for range 100 {
		ask(message(stray, request, rom, ciaddr("10.28.5.5")).ToBytes())
	}
	dropped := 0
	for range 100 {
		if r.next().Decision == dhcp.TooOften {
			dropped++
		}
	}
	if dropped < 70 {
		t.Errorf("%d of 100 packets of a mad NIC were dropped", dropped)
	}

	second := &dhcpd.Server{Interface: "srv", Responder: dhcp.Responder{Farm: farm{}, Mode: pools.DHCPProxy}}
	r.in(r.srv, func() error {
		if err := second.Listen(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second server: got error %v", err)
		}
		return nil
	})
}
