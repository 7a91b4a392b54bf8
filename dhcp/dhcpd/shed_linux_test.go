package dhcpd_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/dhcpd"
	"drover/e2e/fixture"
	"drover/pools"
)

// TestShedFilter: the filter drops DISCOVERs at random, and nothing else.
func TestShedFilter(t *testing.T) {
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := dhcpd.Attach(raw, dhcpd.PassAll/8); err != nil {
		t.Fatal(err)
	}
	sender, err := net.Dial("udp4", c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	buf := make([]byte, 2000)
	// passed returns how many of 800 copies of a message pass. Loopback delivers a
	// message before the call that sends it returns.
	passed := func(m *dhcpv4.DHCPv4) (n int) {
		for range 800 {
			if _, err := sender.Write(m.ToBytes()); err != nil {
				t.Fatal(err)
			}
			_ = raw.Read(func(fd uintptr) bool {
				if _, _, err := syscall.Recvfrom(int(fd), buf, syscall.MSG_DONTWAIT); err == nil {
					n++
				}
				return true
			})
		}
		return n
	}
	loopback := pools.MAC{} // the source of frames there
	if n := passed(message(loopback, discover)); n == 0 || n > 300 {
		t.Errorf("got %d of 800 DISCOVERs, want about 100", n)
	}
	if n := passed(message(loopback, request)); n != 800 {
		t.Errorf("got %d of 800 REQUESTs", n)
	}
}

// TestShedder: the share that passes falls while the queue overflows, never to nothing,
// and is whole again some time after. A backlog without an overflow changes nothing.
func TestShedder(t *testing.T) {
	const flood = 30
	var shares []uint32
	var s *dhcpd.Shedder
	s = dhcpd.NewShedder(func(share uint32) error {
		if shares = append(shares, share); len(shares) < flood {
			s.Overflow()
		}
		return nil
	})
	for range 200 {
		if s.Read(dhcpd.BatchLength) {
			t.Fatal("it sheds although the queue has room")
		}
	}
	s.Overflow()
	if s.Read(1) {
		t.Fatal("it sheds although the socket is empty")
	}
	began := 0
	for range 200 {
		if s.Read(dhcpd.BatchLength) {
			began++
		}
	}
	if began != 1 {
		t.Fatalf("began %d times", began)
	}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	least := shares[flood-1]
	if least == 0 || least > dhcpd.PassAll/32 || shares[0] < dhcpd.PassAll/2 || shares[len(shares)-1] != dhcpd.PassAll {
		t.Errorf("got shares %d", shares)
	}
	fixture.Eventually(t, "the next backlog counts", func() bool { s.Overflow(); return s.Read(dhcpd.BatchLength) })
}
