package dhcpd_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/dhcpd"
	"drover/dhcp/shed"
	"drover/pools"
)

// TestShedEndsBeforeTheIntake: what sheds uses the sockets, which the next Listen replaces.
func TestShedEndsBeforeTheIntake(t *testing.T) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sender, err := net.Dial("udp4", c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	for range dhcpd.BatchLength {
		if _, err := sender.Write([]byte("no DHCP")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var shedding atomic.Bool
	err = dhcpd.ReadShedding(ctx, c, func(uint32) error {
		shedding.Store(true)
		cancel()
		time.Sleep(50 * time.Millisecond) // in which the reading ends
		shedding.Store(false)
		return nil
	})
	if err != nil || ctx.Err() == nil {
		t.Errorf("it did not shed, error %v", err)
	}
	if shedding.Load() {
		t.Error("the intake has ended, and what sheds has not")
	}
}

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
	if err := dhcpd.Attach(raw, shed.All/8); err != nil {
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
