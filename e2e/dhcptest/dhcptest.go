// Package dhcptest has the machines, farm, leases and packets that the tests of
// DHCP share. It knows neither the package that it helps to test nor a socket.
package dhcptest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/pools"
	"drover/pools/resolve"
)

// The cast of the tests.
var (
	ServerAddr = netip.MustParseAddr("10.28.0.2")
	OtherAddr  = netip.MustParseAddr("10.28.0.3")
	Noon       = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	Web1    = MAC("52:54:00:00:00:01") // web1, first NIC
	Web1b   = MAC("52:54:00:00:00:02") // web1, second NIC
	Stray   = MAC("52:54:00:77:01:01") // in no pool: catch-all
	Foreign = MAC("0a:00:00:00:00:01") // none of ours
)

// MAC parses a hardware address; it panics for text that is not one.
func MAC(s string) pools.MAC {
	m, err := pools.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

// Farm knows web1, and takes every MAC that begins with 52:54:00:77 for unknown
// hardware. Other machines are not its own.
type Farm struct{ Options []resolve.Option }

// Resolve returns the plan of a machine.
func (f Farm) Resolve(q resolve.Query) *resolve.Plan {
	p := &resolve.Plan{
		MAC: q.MAC, MACs: []pools.MAC{q.MAC},
		Subnet: pools.Subnet{
			CIDR: netip.MustParsePrefix("10.28.0.0/16"), Router: netip.MustParseAddr("10.28.0.1"),
			DNS: []netip.Addr{netip.MustParseAddr("10.28.0.1"), netip.MustParseAddr("10.28.0.9")}, Domain: "example.org",
		},
		Lease:   pools.Duration(12 * time.Hour),
		Boot:    resolve.BootTarget{Server: ServerAddr, File: q.Firmware.Loader()},
		Options: f.Options,
	}
	switch {
	case q.IPXE:
		p.Boot.File = "http://10.28.0.2/boot/" + q.MAC.Dashed()
	case q.Firmware.HTTP():
		p.Boot.File = "http://10.28.0.2/loaders/" + q.Firmware.Loader()
	}
	switch {
	case q.MAC == Web1 || q.MAC == Web1b:
		p.Node, p.Pool, p.Address = "web1", "web", netip.MustParseAddr("10.28.36.1")
	case [4]byte(q.MAC[:4]) == [4]byte{0x52, 0x54, 0x00, 0x77}:
		p.Node, p.Pool, p.CatchAll, p.Lease = "node-"+q.MAC.Hex(), "lobby", true, pools.Duration(5*time.Minute)
	default:
		return nil
	}
	return p
}

// WhyNot is the reason for which Resolve returns nil.
func (Farm) WhyNot(q resolve.Query) string { return "no node has MAC " + q.MAC.String() }

// FarmFunc changes the plans of a Farm.
type FarmFunc func(*resolve.Plan)

// Resolve returns the changed plan of a machine.
func (f FarmFunc) Resolve(q resolve.Query) *resolve.Plan {
	p := Farm{}.Resolve(q)
	if p != nil {
		f(p)
	}
	return p
}

// WhyNot is that of Farm.
func (FarmFunc) WhyNot(q resolve.Query) string { return Farm{}.WhyNot(q) }

// Leases gives out 10.28.72.10 and the addresses after it, and records what became
// of them. With one of its errors set it fails.
type Leases struct {
	mu        sync.Mutex
	Offered   map[pools.MAC]netip.Addr
	Active    map[netip.Addr]pools.MAC
	Declined  map[netip.Addr]bool
	Clients   map[netip.Addr]string // the client identifiers of active leases
	Taken     []string              // the leases that were ended, in order
	OfferErr  error
	CommitErr error
	DiskErr   error // of the wait
}

// NewLeases returns a store without leases.
func NewLeases() *Leases {
	return &Leases{Offered: map[pools.MAC]netip.Addr{}, Active: map[netip.Addr]pools.MAC{}, Declined: map[netip.Addr]bool{}, Clients: map[netip.Addr]string{}}
}

// Offer returns the machine's address, or the next free one.
func (l *Leases) Offer(p *resolve.Plan, _ netip.Addr, _ time.Time) (netip.Addr, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.OfferErr != nil {
		return netip.Addr{}, false, l.OfferErr
	}
	a, ok := l.Offered[p.MAC]
	if ok && !l.Declined[a] {
		return a, false, nil
	}
	a = netip.AddrFrom4([4]byte{10, 28, 72, byte(10 + len(l.Offered) + len(l.Declined))})
	l.Offered[p.MAC] = a
	return a, true, nil
}

// Commit stores a lease.
func (l *Leases) Commit(p *resolve.Plan, a netip.Addr, _ time.Time) (func() error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.CommitErr != nil {
		return nil, l.CommitErr
	}
	if m, ok := l.Active[a]; ok && m != p.MAC {
		return nil, fmt.Errorf("%s belongs to %s: %w", a, m, pools.ErrRefused)
	}
	l.leave(p.MAC)
	l.Active[a], l.Clients[a] = p.MAC, p.Query().ClientID
	return func() error { return l.DiskErr }, nil
}

// holds returns the active lease of a machine. The lock is held.
func (l *Leases) holds(m pools.MAC) (netip.Addr, bool) {
	for a, mac := range l.Active {
		if mac == m {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Holds returns the active lease of a machine.
func (l *Leases) Holds(m pools.MAC, _ time.Time) (netip.Addr, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds(m)
}

// leave ends the lease of a machine. The lock is held.
func (l *Leases) leave(m pools.MAC) {
	if a, ok := l.holds(m); ok {
		delete(l.Active, a)
	}
}

// Leave ends the lease of a machine.
func (l *Leases) Leave(m pools.MAC, keep netip.Addr, _ time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.holds(m); !ok || a == keep {
		return
	}
	l.Taken = append(l.Taken, "left by "+m.String())
	l.leave(m)
}

// Release ends a lease of the machine.
func (l *Leases) Release(p *resolve.Plan, a netip.Addr, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, own := p.MAC, l.own(p, a)
	if l.Active[a] == m && own {
		l.Taken = append(l.Taken, a.String()+" released by "+m.String())
		delete(l.Active, a)
	}
	return l.Active[a] != m || own
}

// own reports whether a lease has no other client identifier than the query of p.
func (l *Leases) own(p *resolve.Plan, a netip.Addr) bool {
	id := p.Query().ClientID
	return id == "" || l.Clients[a] == "" || l.Clients[a] == id
}

// Decline takes an address out of use.
func (l *Leases) Decline(p *resolve.Plan, a netip.Addr, _ string, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if (l.Active[a] != p.MAC || !l.own(p, a)) && (l.Offered[p.MAC] != a || l.Active[a] == p.MAC) {
		return false
	}
	delete(l.Active, a)
	l.Declined[a] = true
	return true
}

// ErrDisk is an error of the store.
var ErrDisk = errors.New("disk is gone")

// Message builds a request with a fixed transaction id.
func Message(m pools.MAC, t dhcpv4.MessageType, mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
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

// Option sets an option of a Message.
func Option(code uint8, data ...byte) dhcpv4.Modifier {
	return func(d *dhcpv4.DHCPv4) { d.Options[code] = data }
}

// Text sets an option to a text.
func Text(code uint8, s string) dhcpv4.Modifier { return Option(code, []byte(s)...) }

// Arch sets the architecture of a boot program.
func Arch(n uint16) dhcpv4.Modifier { return Option(93, binary.BigEndian.AppendUint16(nil, n)...) }

// Requested sets the requested address.
func Requested(a string) dhcpv4.Modifier { return Option(50, netip.MustParseAddr(a).AsSlice()...) }

// ServerID sets the server identifier.
func ServerID(a netip.Addr) dhcpv4.Modifier { return Option(54, a.AsSlice()...) }

// Ciaddr sets the client's own address.
func Ciaddr(a string) dhcpv4.Modifier { return dhcpv4.WithClientIP(net.ParseIP(a)) }

// Giaddr sets the address of the relay agent.
func Giaddr(a string) dhcpv4.Modifier { return dhcpv4.WithGatewayIP(net.ParseIP(a)) }

// Hold gives a machine an active lease.
func (l *Leases) Hold(m pools.MAC, a string) { l.Active[netip.MustParseAddr(a)] = m }

// ROM makes a request one of a boot program.
func ROM(d *dhcpv4.DHCPv4) {
	Arch(7)(d)
	Text(60, "PXEClient:Arch:00007:UNDI:003000")(d)
}
