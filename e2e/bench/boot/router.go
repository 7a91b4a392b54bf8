package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/lab"
)

// router is an IPv6 router without routes on the machine's segment, for the stack of other
// programs. iPXE waits up to 16 s for a router advertisement, even with an IPv4 address.
// drover answers iPXE, and dnsmasq without an IPv6 network does not: without a router that
// stack would take that much longer, and the ratio would be that of the waiting.
type router struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error
}

const (
	routerAddress  = "fe80::1"
	allNodes       = "ff02::1"
	advertiseEvery = 500 * time.Millisecond
)

// advertisement is a router advertisement (RFC 4861, section 4.2): no prefix, no
// DHCPv6, no default route. The kernel fills in the checksum.
func advertisement() []byte {
	const routerAdvertisement, hopLimit = 134, 64
	return []byte{routerAdvertisement, 0, 0, 0, hopLimit, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
}

func startRouter(ctx context.Context, rack *lab.Rack) (*router, error) {
	if _, err := rack.Run(ctx, "ip", "-6", "addr", "replace", routerAddress+"/64", "dev", lab.Bridge, "nodad"); err != nil {
		return nil, err
	}
	r := &router{}
	ctx, r.cancel = context.WithCancel(ctx)
	ready := make(chan error)
	r.done.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		fd, to, err := openRouter(rack)
		ready <- err
		if err != nil {
			return
		}
		defer unix.Close(fd)
		r.err = advertise(ctx, fd, to)
	})
	if err := <-ready; err != nil {
		r.cancel()
		return nil, fmt.Errorf("IPv6 router: %w", err)
	}
	return r, nil
}

// openRouter opens a socket on the rack's wire.
func openRouter(rack *lab.Rack) (fd int, to *unix.SockaddrInet6, err error) {
	if err := rack.Enter(); err != nil {
		return -1, nil, err
	}
	bridge, err := net.InterfaceByName(lab.Bridge)
	if err != nil {
		return -1, nil, err
	}
	if fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6); err != nil {
		return -1, nil, err
	}
	zone := uint32(bridge.Index)
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255), // hosts ignore others, which may be from beyond the segment
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, bridge.Index),
		unix.Bind(fd, &unix.SockaddrInet6{Addr: netip.MustParseAddr(routerAddress).As16(), ZoneId: zone}))
	if err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	return fd, &unix.SockaddrInet6{Addr: netip.MustParseAddr(allNodes).As16(), ZoneId: zone}, nil
}

// advertise sends until ctx ends. A bridge without machines refuses packets.
func advertise(ctx context.Context, fd int, to *unix.SockaddrInet6) error {
	for tick := time.NewTicker(advertiseEvery); ; {
		err := unix.Sendto(fd, advertisement(), 0, to)
		if err != nil && !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENETDOWN) {
			return fmt.Errorf("IPv6 router: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// stop ends it.
func (r *router) stop() error {
	r.cancel()
	r.done.Wait()
	return r.err
}
