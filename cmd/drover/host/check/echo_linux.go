package check

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	ipHeader    = 20 // bytes
	icmpHeader  = 8
	echoRequest = 8 // types of ICMP
	echoReply   = 0
	tries       = 3
)

// echo reports whether an echo request of that size in bytes, with the IP header, is
// answered. Nothing on the way may fragment it.
func echo(ctx context.Context, from, to netip.Addr, size int, timeout time.Duration) (bool, error) {
	control := func(_, _ string, raw syscall.RawConn) (err error) {
		if e := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
		}); e != nil {
			return e
		}
		return err
	}
	conn, err := (&net.ListenConfig{Control: control}).ListenPacket(ctx, "ip4:icmp", from.String())
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request := newEcho(size)
	for range tries {
		if _, err := conn.WriteTo(request, &net.IPAddr{IP: to.AsSlice()}); err != nil {
			// A firewall of this host, a route that went, or a packet that is too large.
			if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.EMSGSIZE) {
				return false, nil
			}
			return false, fmt.Errorf("echo request to %s: %w", to, err)
		}
		if answered(conn, to, request, timeout/tries) {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// newEcho returns an echo request with random contents.
func newEcho(size int) []byte {
	p := make([]byte, max(size-ipHeader, icmpHeader+8))
	_, _ = rand.Read(p[4:]) // it never fails
	p[0] = echoRequest
	var sum uint32
	for i := 0; i+1 < len(p); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	if len(p)%2 == 1 {
		sum += uint32(p[len(p)-1]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(p[2:], ^uint16(sum))
	return p
}

// answered waits for the answer to a request. The socket gets all ICMP packets of the host.
func answered(conn net.PacketConn, from netip.Addr, request []byte, timeout time.Duration) bool {
	end := time.Now().Add(timeout)
	buf := make([]byte, 1<<16)
	for {
		if conn.SetReadDeadline(end) != nil {
			return false
		}
		n, addr, err := conn.ReadFrom(buf)
		if err != nil {
			return false
		}
		a, ok := addr.(*net.IPAddr)
		if ok && a.IP.Equal(from.AsSlice()) && n == len(request) && buf[0] == echoReply && bytes.Equal(buf[4:n], request[4:]) {
			return true
		}
	}
}
