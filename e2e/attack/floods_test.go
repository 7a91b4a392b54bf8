package attack_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/attack"
)

// flood is an attack that goes on until its context ends.
type flood struct {
	name string
	sent string // what it sends
	run  func(ctx context.Context, l *attack.Lab, s *attack.Server) (int, error)
}

// spoofed is the network of the forged sources of TFTP requests. It is part of the boot
// network.
var spoofed = netip.MustParsePrefix("10.77.200.0/24")

// elsewhere is a network of forged sources outside of the declared networks.
var elsewhere = netip.MustParsePrefix("192.168.6.0/24")

// slowAddrs are addresses of no declared machine, whose clients read slowly.
var slowAddrs = []string{"10.77.210.1", "10.77.210.2", "10.77.210.3"}

var (
	discovers = flood{"H5", "4000 DISCOVERs/s of made-up MACs", func(ctx context.Context, l *attack.Lab, _ *attack.Server) (int, error) {
		return attack.Discovers(ctx, l.Wire, 4000)
	}}
	requests = flood{"H7", "1024 TFTP requests, then 100/s, of 70 addresses", func(ctx context.Context, l *attack.Lab, _ *attack.Server) (int, error) {
		return attack.Requests(ctx, l.Wire, spoofed, 100)
	}}
	readers = flood{"H8", "3 addresses with 64 connections of 90 kB/s", func(ctx context.Context, l *attack.Lab, s *attack.Server) (int, error) {
		return attack.SlowReaders(ctx, l.Wire, s.Root, 64, slowAddrs...)
	}}
	idle = flood{"M1", "600 connections to the API that say nothing", func(ctx context.Context, l *attack.Lab, _ *attack.Server) (int, error) {
		return attack.Idle(ctx, l.Net, 600)
	}}
	mixed = flood{"H3", "4000 packets/s of all kinds of DHCP", func(ctx context.Context, l *attack.Lab, _ *attack.Server) (int, error) {
		return attack.Mixed(ctx, l.Wire, 4000)
	}}
	holders = flood{"H8", "60 addresses with 45 connections to HTTP", func(ctx context.Context, l *attack.Lab, s *attack.Server) (int, error) {
		return attack.Holders(ctx, l.Wire, s.Root, 45, many()...)
	}}
	transfers = flood{"H7", "60 addresses with 16 slow TFTP transfers", func(ctx context.Context, l *attack.Lab, _ *attack.Server) (int, error) {
		return attack.SlowTFTP(ctx, l.Wire, 16, many()...)
	}}
	routers = flood{"RA", "10 000 router solicitations and advertisements/s", func(ctx context.Context, l *attack.Lab, _ *attack.Server) (int, error) {
		return attack.Routers(ctx, l.Wire, 10_000)
	}}
	routed = flood{"H7", "the same from another network", func(ctx context.Context, l *attack.Lab, _ *attack.Server) (int, error) {
		return attack.Requests(ctx, l.Wire, elsewhere, 100)
	}}
)

// many returns the first 60 addresses of the network spoofed.
func many() (all []string) {
	a := spoofed.Addr()
	for range 60 {
		a = a.Next()
		all = append(all, a.String())
	}
	return all
}

// together runs floods at the same time.
func together(name string, floods ...flood) flood {
	var sent []string
	for _, f := range floods {
		sent = append(sent, f.name)
	}
	return flood{name, strings.Join(sent, " and ") + " at once", func(ctx context.Context, l *attack.Lab, s *attack.Server) (total int, err error) {
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, f := range floods {
			all.Go(func() {
				n, failed := f.run(ctx, l, s)
				mu.Lock()
				defer mu.Unlock()
				if total += n; failed != nil {
					err = fmt.Errorf("%s: %w", f.name, failed)
				}
			})
		}
		all.Wait()
		return total, err
	}}
}

// TestFloods (H5, H7, H8, M1, and forged routers) boots a declared machine while strangers use up what they
// can. With -long it prints a table.
func TestFloods(t *testing.T) {
	l := newLab(t)
	for _, p := range []netip.Prefix{spoofed, elsewhere} {
		if err := attack.Silent(l.Wire, p); err != nil {
			t.Fatal(err)
		}
	}
	l.Net.IP(t, "route", "add", elsewhere.String(), "via", attack.WireAddr)
	for _, a := range slowAddrs {
		l.Wire.IP(t, "addr", "add", a+"/16", "dev", "eth0")
	}
	table := []string{fmt.Sprintf("%-5s %-50s %9s %8s %8s %8s", "", "sent", "number", "alone", "attacked", "memory")}
	all := []flood{discovers, requests, readers, idle, routers, together("all", discovers, requests, readers, idle)}
	if *long {
		all = append(all, routed, mixed, holders, transfers)
	}
	for _, f := range all {
		t.Run(f.name+": "+f.sent, func(t *testing.T) {
			table = append(table, attacked(t, l, f))
		})
	}
	t.Logf("a machine's whole boot, alone and attacked:\n%s", strings.Join(table, "\n"))
}

// attacked boots m2 before and during a flood, and returns a row of the table.
func attacked(t *testing.T, l *attack.Lab, f flood) string {
	t.Helper()
	s := l.Serve(t, fmt.Sprintf(attack.Farm, ""), 64<<20)
	machine := m2(l)
	alone := boots(t, machine)
	machine.Pause = 3 * time.Second // as of slow firmware: H5
	machine.Limit = 45 * time.Second

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := make(chan int, 1)
	failed := make(chan error, 1)
	go func() {
		n, err := f.run(ctx, l, s)
		sent <- n
		failed <- err
	}()
	time.Sleep(2 * time.Second) // until the flood fills what it can
	slowest := time.Duration(0)
	for end := time.Now().Add(length(0, time.Minute)); ; {
		slowest = max(slowest, boots(t, machine))
		if time.Now().After(end) {
			break
		}
	}
	if err := attack.Health(ctx, l.Net); err != nil { // M1
		t.Errorf("/healthz does not answer: %v", err)
	}
	cancel()
	n := <-sent
	if err := <-failed; err != nil || n == 0 {
		t.Errorf("the flood sent %d: %v", n, err)
	}
	s.WantSmall()
	peak := s.Peak()
	s.Stop()
	s.Wild = true
	return fmt.Sprintf("%-5s %-50s %9d %7.1fs %7.1fs %5d MB", f.name, f.sent, n, alone.Seconds(), slowest.Seconds(), peak>>20)
}
