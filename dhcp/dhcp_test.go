package dhcp_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/config"
)

var _ dhcp.Resolver = (*config.Live)(nil)

// The cast of the tests.
var (
	serverAddr = netip.MustParseAddr("10.28.0.2")
	otherAddr  = netip.MustParseAddr("10.28.0.3")
	noon       = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	web1    = mac("52:54:00:00:00:01") // web1, first NIC
	web1b   = mac("52:54:00:00:00:02") // web1, second NIC
	stray   = mac("52:54:00:77:01:01") // in no pool: catch-all
	foreign = mac("0a:00:00:00:00:01") // none of ours
)

func mac(s string) pools.MAC {
	m, err := pools.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

// farm knows web1 and takes every MAC that begins with 52:54:00:77 for
// catch-all.
type farm struct{ options []pools.Option }

func (f farm) Resolve(q pools.Query) *pools.Plan {
	p := &pools.Plan{
		MAC: q.MAC, MACs: []pools.MAC{q.MAC},
		Subnet: pools.Subnet{
			CIDR: netip.MustParsePrefix("10.28.0.0/16"), Router: netip.MustParseAddr("10.28.0.1"),
			DNS: []netip.Addr{netip.MustParseAddr("10.28.0.1"), netip.MustParseAddr("10.28.0.9")}, Domain: "example.org",
		},
		Lease:   pools.Duration(12 * time.Hour),
		Boot:    pools.BootTarget{Server: serverAddr, File: q.Firmware.Loader()},
		Options: f.options,
	}
	switch {
	case q.IPXE:
		p.Boot.File = "http://10.28.0.2/boot/" + q.MAC.Dashed()
	case q.Firmware.HTTP():
		p.Boot.File = "http://10.28.0.2/loaders/" + q.Firmware.Loader()
	}
	switch {
	case q.MAC == web1 || q.MAC == web1b:
		p.Node, p.Pool, p.Address = "web1", "web", netip.MustParseAddr("10.28.36.1")
	case [4]byte(q.MAC[:4]) == [4]byte{0x52, 0x54, 0x00, 0x77}:
		p.Node, p.Pool, p.CatchAll, p.Lease = "node-"+q.MAC.Hex(), "lobby", true, pools.Duration(5*time.Minute)
	default:
		return nil
	}
	return p
}

func (farm) WhyNot(q pools.Query) string { return "no node has MAC " + q.MAC.String() }

// farmFunc changes the plans of farm.
type farmFunc func(*pools.Plan)

func (f farmFunc) Resolve(q pools.Query) *pools.Plan {
	p := farm{}.Resolve(q)
	if p != nil {
		f(p)
	}
	return p
}

func (farmFunc) WhyNot(q pools.Query) string { return farm{}.WhyNot(q) }

// farmOf is the farm of a config file, less its server section.
func farmOf(t testing.TB, text string) *pools.Farm {
	t.Helper()
	path := filepath.Join(t.TempDir(), "drover.yaml")
	if err := os.WriteFile(path, []byte("server: {address: 10.28.0.2, interfaces: [srv]}\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// leases hands out 10.28.72.10 and what follows, and remembers what became of
// it. With one of its errors set it fails.
type leases struct {
	mu        sync.Mutex
	offered   map[pools.MAC]netip.Addr
	active    map[netip.Addr]pools.MAC
	declined  map[netip.Addr]bool
	taken     []string // what was left and released
	offerErr  error
	commitErr error
	diskErr   error // of the wait
}

func newLeases() *leases {
	return &leases{offered: map[pools.MAC]netip.Addr{}, active: map[netip.Addr]pools.MAC{}, declined: map[netip.Addr]bool{}}
}

func (l *leases) Offer(p *pools.Plan, _ netip.Addr, _ time.Time) (netip.Addr, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offerErr != nil {
		return netip.Addr{}, false, l.offerErr
	}
	a, ok := l.offered[p.MAC]
	if ok && !l.declined[a] {
		return a, false, nil
	}
	a = netip.AddrFrom4([4]byte{10, 28, 72, byte(10 + len(l.offered) + len(l.declined))})
	l.offered[p.MAC] = a
	return a, true, nil
}

func (l *leases) Commit(p *pools.Plan, a netip.Addr, _ time.Time) (func() error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.commitErr != nil {
		return nil, l.commitErr
	}
	if m, ok := l.active[a]; ok && m != p.MAC {
		return nil, fmt.Errorf("%s belongs to %s: %w", a, m, pools.ErrRefused)
	}
	l.leave(p.MAC)
	l.active[a] = p.MAC
	return func() error { return l.diskErr }, nil
}

// holds returns the active lease of a machine. The lock is held.
func (l *leases) holds(m pools.MAC) (netip.Addr, bool) {
	for a, mac := range l.active {
		if mac == m {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (l *leases) Holds(m pools.MAC, _ time.Time) (netip.Addr, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds(m)
}

// leave ends the lease of a machine. The lock is held.
func (l *leases) leave(m pools.MAC) {
	if a, ok := l.holds(m); ok {
		delete(l.active, a)
	}
}

func (l *leases) Leave(m pools.MAC, _ time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = append(l.taken, "left by "+m.String())
	l.leave(m)
}

func (l *leases) Release(m pools.MAC, a netip.Addr, _ time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[a] == m {
		l.taken = append(l.taken, a.String()+" released by "+m.String())
		delete(l.active, a)
	}
}

func (l *leases) Decline(m pools.MAC, a netip.Addr, _ string, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[a] != m && l.offered[m] != a {
		return false
	}
	delete(l.active, a)
	l.declined[a] = true
	return true
}

var errDisk = errors.New("disk is gone")

func newServer() (*dhcp.Server, *leases) {
	l := newLeases()
	return &dhcp.Server{Farm: farm{}, Leases: l, Address: serverAddr}, l
}

// message builds a request with a fixed transaction id.
func message(m pools.MAC, t dhcpv4.MessageType, mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	d := &dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet,
		TransactionID: dhcpv4.TransactionID{0xca, 0xfe, 0, 1}, ClientHWAddr: net.HardwareAddr(m[:]),
		Options: dhcpv4.Options{},
	}
	d.UpdateOption(dhcpv4.OptMessageType(t))
	for _, mod := range mods {
		mod(d)
	}
	return d
}

func option(code uint8, data ...byte) dhcpv4.Modifier {
	return func(d *dhcpv4.DHCPv4) { d.Options[code] = data }
}

func text(code uint8, s string) dhcpv4.Modifier { return option(code, []byte(s)...) }

func arch(n uint16) dhcpv4.Modifier { return option(93, binary.BigEndian.AppendUint16(nil, n)...) }

func requested(a string) dhcpv4.Modifier { return option(50, netip.MustParseAddr(a).AsSlice()...) }

func serverID(a netip.Addr) dhcpv4.Modifier { return option(54, a.AsSlice()...) }

func ciaddr(a string) dhcpv4.Modifier { return dhcpv4.WithClientIP(net.ParseIP(a)) }

func giaddr(a string) dhcpv4.Modifier { return dhcpv4.WithGatewayIP(net.ParseIP(a)) }

// on passes a packet through the wire format, as the server gets it.
func on(t testing.TB, d *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	t.Helper()
	p, err := dhcpv4.FromBytes(d.ToBytes())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
