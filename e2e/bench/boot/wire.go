package main

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"drover/e2e/lab"
)

// wire is two namespaces with an Ethernet between them.
type wire struct{ servers, clients *lab.Rack }

const (
	wireName   = "wire0"
	wireSubnet = "10.98.0.0/16"
	mostConns  = 64
)

var serverIP = netip.MustParseAddr("10.98.0.1")

// clientIPs are the source addresses of the connections, one for each, like the machines of
// a rack.
func clientIPs() (addrs []netip.Addr) {
	for n := range mostConns {
		addrs = append(addrs, netip.AddrFrom4([4]byte{10, 98, 1, byte(n + 1)}))
	}
	return addrs
}

func (b *bench) openWire(ctx context.Context) (w *wire, err error) {
	w = &wire{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.servers, err = lab.Open("drover-bench-web", filepath.Join(b.dir, "http-servers")); err != nil {
		return w, err
	}
	if w.clients, err = lab.Open("drover-bench-web-clients", filepath.Join(b.dir, "http-clients")); err != nil {
		return w, err
	}
	if _, err := w.servers.Run(ctx, "ip", "link", "add", wireName, "type", "veth", "peer", "name", wireName, "netns", w.clients.Name); err != nil {
		return w, err
	}
	for rack, addrs := range map[*lab.Rack][]netip.Addr{w.servers: {serverIP}, w.clients: clientIPs()} {
		for _, a := range addrs {
			if _, err := rack.Run(ctx, "ip", "addr", "add", netip.PrefixFrom(a, 16).String(), "dev", wireName); err != nil {
				return w, err
			}
		}
		if _, err := rack.Run(ctx, "ip", "link", "set", wireName, "up"); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *wire) close() error {
	var errs []error
	for _, r := range []*lab.Rack{w.clients, w.servers} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}

// atClient runs f on a thread of its own on the clients' side and processor.
func (w *wire) atClient(f func() error) error {
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		errs <- func() error {
			if err := w.clients.Enter(); err != nil {
				return err
			}
			var set unix.CPUSet
			set.Set(clientCPU)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				return err
			}
			return f()
		}()
	}()
	return <-errs
}
