package doctor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"drover/dhcp/bootprogram"
	"drover/e2e/netns"
	"drover/pools"
)

// TestAskDHCP: a DISCOVER finds a server on the wire that offers an address, and no other
// host that answers.
func TestAskDHCP(t *testing.T) {
	server := netns.NewNamespace(t, fmt.Sprintf("drvdoc%ds", os.Getpid()))
	client := netns.NewNamespace(t, fmt.Sprintf("drvdoc%dc", os.Getpid()))
	server.Link(t, "wire", client, "wire")
	server.IP(t, "address", "add", "10.99.0.1/24", "dev", "wire")
	client.IP(t, "address", "add", "10.99.0.2/24", "dev", "wire")
	for _, n := range []netns.Namespace{server, client} {
		n.IP(t, "link", "set", "wire", "up")
	}
	server.IP(t, "route", "add", "default", "dev", "wire") // for its broadcasts
	ask := func(wait time.Duration) (found []netip.Addr) {
		t.Helper()
		client.In(t, func() (err error) {
			found, err = askDHCP(t.Context(), "wire", wait)
			return err
		})
		return found
	}
	if got := ask(200 * time.Millisecond); len(got) > 0 {
		t.Errorf("nobody is there, and got %v", got)
	}
	var conn net.PacketConn
	server.In(t, func() (err error) {
		conn, err = net.ListenPacket("udp4", ":67")
		return err
	})
	done := make(chan error, 1)
	go func() { done <- offer(conn, [4]byte{10, 99, 0, 1}) }()
	defer func() {
		_ = conn.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}()
	var got []netip.Addr
	for range 30 { // a new wire can lose the first packets
		if got = ask(time.Second); len(got) > 0 {
			break
		}
	}
	if len(got) == 0 || got[0] != netip.MustParseAddr("10.99.0.1") {
		t.Errorf("got %v, want 10.99.0.1", got)
	}
}

// offer answers each DISCOVER with an OFFER of a server, and with packets that are none.
func offer(conn net.PacketConn, server [4]byte) error {
	b := make([]byte, 2048)
	to := &net.UDPAddr{IP: net.IPv4bcast, Port: 68}
	for {
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			return err
		}
		reply := make([]byte, 240)
		copy(reply, b[:min(n, 240)])
		reply[0] = 2
		for _, options := range [][]byte{
			{53, 1, 6, 54, 4, 10, 99, 0, 7, 255},                          // a NAK
			{53, 1, 2, 54, 9, 10},                                         // cut off
			append(append([]byte{0, 53, 1, 2, 54, 4}, server[:]...), 255), // an OFFER
		} {
			if _, err := conn.WriteTo(append(reply[:240:240], options...), to); err != nil {
				return err
			}
		}
	}
}

// FuzzOfferOf: no packet of the network ends the program.
func FuzzOfferOf(f *testing.F) {
	mac := pools.MAC{2}
	packet := (&bootprogram.Discover{MAC: mac}).Packet().ToBytes()
	packet[0] = 2
	f.Add(packet)
	f.Fuzz(func(t *testing.T, packet []byte) {
		if a, ok := offerOf(packet, mac); ok && !a.Is4() {
			t.Errorf("got %s", a)
		}
	})
}
