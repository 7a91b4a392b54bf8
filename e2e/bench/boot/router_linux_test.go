package main_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	main "drover/e2e/bench/boot"
	"drover/e2e/fixture"
	"drover/e2e/lab"
)

// TestRouter: hosts of the segment receive advertisements that IPv6 accepts: from a
// link-local address, with hop limit 255 and a correct checksum.
func TestRouter(t *testing.T) {
	fixture.Root(t)
	rack, err := lab.Open("drover-test-router", filepath.Join(t.TempDir(), "rack"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rack.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, args := range []string{
		"link add host0 type veth peer name port0", // the machine's card, and the bridge's port
		"link set port0 master " + lab.Bridge, "link set port0 up",
		"-6 addr add fe80::2/64 dev host0 nodad", "link set host0 up",
	} {
		if _, err := rack.Run(t.Context(), "ip", strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	stop, err := main.StartRouter(t.Context(), rack)
	if err != nil {
		t.Fatal(err)
	}
	from, hops := hearRouter(t, rack)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if from != "fe80::1" || hops != 255 {
		t.Errorf("heard %q with hop limit %d", from, hops)
	}
}

// hearRouter waits for an advertisement at the machine's card.
func hearRouter(t *testing.T, rack *lab.Rack) (from string, hops int) {
	t.Helper()
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := rack.Enter()
		if err == nil {
			from, hops, err = hear()
		}
		errs <- err
	}()
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	return from, hops
}

func hear() (from string, hops int, err error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
	if err != nil {
		return "", 0, err
	}
	defer unix.Close(fd)
	err = errors.Join(
		unix.BindToDevice(fd, "host0"),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}))
	for err == nil {
		var msg, control [256]byte
		n, cn, _, peer, rerr := unix.Recvmsg(fd, msg[:], control[:], 0)
		if rerr != nil {
			return "", 0, rerr
		}
		if n != 16 || msg[0] != 134 {
			continue // another packet
		}
		messages, merr := unix.ParseSocketControlMessage(control[:cn])
		for _, m := range messages {
			if m.Header.Type == unix.IPV6_HOPLIMIT {
				hops = int(binary.NativeEndian.Uint32(m.Data))
			}
		}
		return netip.AddrFrom16(peer.(*unix.SockaddrInet6).Addr).String(), hops, merr
	}
	return "", 0, err
}
