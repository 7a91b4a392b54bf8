package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
)

// office is a network with a DHCP server that [New] connected: the real farm, and
// leases on disk.
type office struct {
	t      *testing.T
	net    netns.Namespace // the server's; its interface is srv
	config string
	head   string // of the config
	server *Server
	log    fixture.Log

	mu   sync.Mutex
	seen []dhcp.Exchange
}

const officeHead = `server:
  interfaces: [srv]
  address: 10.28.0.2
  arpProbe: %t
subnets:
  - {cidr: 10.28.0.0/16, router: 10.28.0.1, lease: 1h}
  - {cidr: 10.29.0.0/16, router: 10.29.0.1, lease: 1h}
  - {cidr: 10.30.0.0/16, router: 10.30.0.1, lease: 1h}
pools:
`

// newOffice starts the server with a config of these pools. An ARP probe takes 200 ms
// for each lease.
func newOffice(t *testing.T, probe bool, pools string, programs ...string) *office {
	t.Helper()
	return newOfficeOf(t, fmt.Sprintf(officeHead, probe), pools, programs...)
}

// newOfficeOf starts the server with a config of this head and these pools.
func newOfficeOf(t *testing.T, head, pools string, programs ...string) *office {
	t.Helper()
	netns.Need(t, programs...)
	dir := t.TempDir()
	o := &office{t: t, head: head, net: netns.NewNamespace(t, fmt.Sprintf("drvoffice%d", os.Getpid())), config: filepath.Join(dir, "drover.yaml")}
	o.write(pools)
	// Without a MAC of its own a bridge takes one of its ports'.
	o.net.IP(t, "link", "add", "srv", "address", "02:00:00:00:00:02", "type", "bridge", "forward_delay", "0")
	o.net.IP(t, "addr", "add", "10.28.0.2/16", "dev", "srv")
	o.net.IP(t, "link", "set", "srv", "up")
	log := slog.New(slog.NewTextHandler(&o.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if o.server, err = New(Options{Config: o.config, State: filepath.Join(dir, "state"), Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.server.Close)
	d := o.server.DHCP[0]
	wired := d.OnExchange
	d.OnExchange = func(x dhcp.Exchange) {
		wired(x)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.seen = append(o.seen, x)
	}
	o.serve(d)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("drover said:\n%s", o.log.String())
		}
	})
	return o
}

// serve runs the DHCP server until the test ends.
func (o *office) serve(s *dhcpd.Server) {
	o.t.Helper()
	o.net.In(o.t, s.Listen)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	o.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			o.t.Errorf("Serve: %v", err)
		}
	})
}

// write writes the config with these pools.
func (o *office) write(pools string) {
	o.t.Helper()
	if err := os.WriteFile(o.config, []byte(o.head+pools), 0o644); err != nil {
		o.t.Fatal(err)
	}
}

// change puts another config in force.
func (o *office) change(pools string) {
	o.t.Helper()
	o.write(pools)
	if err := o.server.Live.Reload(); err != nil {
		o.t.Fatal(err)
	}
}

// host returns a namespace whose interface cli is a port of the server's bridge.
func (o *office) host(name string) netns.Namespace {
	o.t.Helper()
	n := netns.NewNamespace(o.t, string(o.net)+name)
	o.net.Link(o.t, name, n, "cli")
	o.net.IP(o.t, "link", "set", name, "master", "srv", "up")
	return n
}

// last returns the last exchange with a machine.
func (o *office) last(mac string) (last dhcp.Exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.seen {
		if x.MAC.String() == mac {
			last = x
		}
	}
	return last
}

// answered reports whether a machine got a reply of a kind. Workers report their
// exchanges in any order.
func (o *office) answered(mac, reply string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.seen, func(x dhcp.Exchange) bool { return x.MAC.String() == mac && x.Reply == reply })
}

// lease returns the active lease of a machine.
func (o *office) lease(mac string) string {
	o.t.Helper()
	m, err := pools.ParseMAC(mac)
	if err != nil {
		o.t.Fatal(err)
	}
	a, ok := o.server.Store.Leases.Holds(m, time.Now())
	if !ok {
		return "none"
	}
	return a.String()
}

// machine is a DHCP client with one network card in one namespace.
type machine struct {
	*netns.Client
	t   *testing.T
	mac string
}

// plug gives the interface cli of a namespace this MAC, as if the card were new.
func plug(t *testing.T, n netns.Namespace, kind netns.Kind, mac string) *machine {
	t.Helper()
	n.IP(t, "addr", "flush", "dev", "cli")
	n.IP(t, "link", "set", "cli", "down")
	n.IP(t, "link", "set", "cli", "address", mac)
	n.IP(t, "link", "set", "cli", "up")
	return &machine{&netns.Client{Kind: kind, Namespace: n, Device: "cli", Dir: t.TempDir()}, t, mac}
}

// starts starts the client and fails the test unless it gets this address.
func (m *machine) starts(address string, extra ...string) map[string]string {
	m.t.Helper()
	m.Start(m.t, extra...)
	got := m.Wait(m.t, netns.Bound)
	if got["address"] != address {
		m.t.Errorf("%s got address %q, want %q", m.mac, got["address"], address)
	}
	return got
}

// boots runs the client with the options of UEFI firmware.
func (m *machine) boots(address string) {
	m.t.Helper()
	m.starts(address, "-q", "-V", "PXEClient:Arch:00007:UNDI:003000", "-x", "93:0007")
	m.End(m.t)
}

// renews renews the lease and returns the new one.
func (m *machine) renews() map[string]string {
	m.t.Helper()
	m.Renew(m.t)
	return m.Wait(m.t, netns.Renewed)
}

// TestMovedWhileItRuns declares a machine that runs on a lease of a catch-all pool. The
// machine keeps its address until its next boot.
func TestMovedWhileItRuns(t *testing.T) {
	const (
		mac   = "52:54:00:77:01:01"
		lobby = `
  - {name: lobby, catchall: true, image: debian-12, range: 10.28.72.10-10.28.72.20}
`
	)
	o := newOffice(t, false, lobby, "udhcpc", "dhcpcd")
	host := o.host("d1")
	running := plug(t, host, netns.Udhcpc(), mac)
	running.starts("10.28.72.10")
	running.renews()

	o.change(lobby + `
  - name: web
    image: debian-12
    nodes: [{name: web1, macs: ["` + mac + `"], ip: 10.28.36.1}]
`)
	if got := running.renews()["address"]; got != "10.28.72.10" {
		t.Errorf("after the change it renewed %q, want what it runs on", got)
	}
	if said := running.Said(); strings.Contains(said, "event=nak") {
		t.Error("it got a NAK while it ran")
	}
	if got := o.lease(mac); got != "10.28.72.10" {
		t.Errorf("it has a lease of %s, want 10.28.72.10", got)
	}
	running.Kill()

	// A DHCP client that starts again without a boot keeps the address too.
	system := plug(t, host, netns.Dhcpcd(), mac)
	system.starts("10.28.72.10")
	system.Kill()

	// The firmware gets the new address, and the lease ends.
	plug(t, host, netns.Udhcpc(), mac).boots("10.28.36.1")
	if got := o.lease(mac); got != "none" {
		t.Errorf("after the boot it has a lease of %s, want none", got)
	}
	// The lease on its disk is no longer valid.
	system.Start(t)
	system.Wait(t, netns.Refused)
	if got := system.Wait(t, netns.Bound)["address"]; got != "10.28.36.1" {
		t.Errorf("the system has address %q, want 10.28.36.1", got)
	}
}

// TestSquatter has a machine with a static address of the range. The client finds it
// after the ACK, and declines. With ARP probes the server finds it before the OFFER.
func TestSquatter(t *testing.T) {
	const mac, taken, free = "52:54:00:77:01:01", "10.28.72.10", "10.28.72.11"
	for name, probe := range map[string]bool{"the client probes": false, "the server probes": true} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, probe, "\n  - {name: lobby, catchall: true, image: debian-12, range: 10.28.72.10-10.28.72.20}\n", "udhcpc")
			squatter := plug(t, o.host("d1"), netns.Udhcpc(), "52:54:00:99:00:01")
			squatter.Namespace.IP(t, "addr", "add", taken+"/16", "dev", "cli")

			plug(t, o.host("d2"), netns.Udhcpc(), mac).starts(free, "-a", "-A", "1")
			if got := strings.Contains(o.log.String(), "type=DECLINE"); got == probe {
				t.Errorf("the client declined: %t, want %t", got, !probe)
			}
			for _, l := range o.server.Store.Leases.List() {
				if l.Address.String() == taken && l.State(time.Now()) == pools.LeaseDeclined {
					return
				}
			}
			t.Errorf("%s is not in quarantine: %+v", taken, o.server.Store.Leases.List())
		})
	}
}
