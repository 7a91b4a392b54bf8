package packetio_test

import (
	"net"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"drover/dhcp/packetio"
)

// listen opens a UDP port of loopback.
func listen(t *testing.T) (*net.UDPConn, syscall.RawConn) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return c, raw
}

func TestSendReceive(t *testing.T) {
	c, server := listen(t)
	_, client := listen(t)
	if err := packetio.SetReceiveBuffer(server, 1<<20); err != nil {
		t.Fatal(err)
	}
	to := c.LocalAddr().(*net.UDPAddr).AddrPort()
	name := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: packetio.NetworkOrder(to.Port()), Addr: to.Addr().As4()}
	for _, packet := range []string{"one", "seventeen"} {
		err := packetio.Send(client, []byte(packet), unsafe.Slice((*byte)(unsafe.Pointer(&name)), unix.SizeofSockaddrInet4), nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	var (
		headers [4]packetio.Header
		data    [4]unix.Iovec
		buffers [4][16]byte
	)
	for i := range headers {
		data[i].Base = &buffers[i][0]
		data[i].SetLen(len(buffers[i]))
		headers[i].Iov = &data[i]
		headers[i].SetIovlen(1)
	}
	var got []string
	for len(got) < 2 {
		count, err := packetio.Receive(server, headers[:])
		if err != nil {
			t.Fatal(err)
		}
		for i := range count {
			got = append(got, string(buffers[i][:headers[i].Size]))
		}
	}
	if got[0] != "one" || got[1] != "seventeen" {
		t.Errorf("received %q", got)
	}
}

// A call ends with the error of the kernel.
func TestSendError(t *testing.T) {
	_, client := listen(t)
	name := unix.RawSockaddrInet4{Family: unix.AF_INET} // port 0
	err := packetio.Send(client, []byte("x"), unsafe.Slice((*byte)(unsafe.Pointer(&name)), unix.SizeofSockaddrInet4), nil)
	if err != unix.EINVAL {
		t.Errorf("got %v, want %v", err, unix.EINVAL)
	}
}

// The example of RFC 1071, section 3, in two parts, and with an odd byte.
func TestChecksum(t *testing.T) {
	whole := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	if sum := packetio.Checksum(0, whole); sum != 0xddf2 {
		t.Errorf("got %#x", sum)
	}
	if sum := packetio.Checksum(uint32(packetio.Checksum(0, whole[:4])), whole[4:]); sum != 0xddf2 {
		t.Errorf("in two parts: got %#x", sum)
	}
	if sum := packetio.Checksum(0, []byte{0x12, 0x34, 0x56}); sum != 0x6834 {
		t.Errorf("odd length: got %#x", sum)
	}
}
