package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"drover/pools"
)

// offerHold is how long an offered address waits for its REQUEST. A PXE ROM
// collects offers for up to 4 s and retries with pauses of up to 32 s (PXE
// 2.1, 2.2.3); a shorter hold would give two machines the same address when
// many start at once.
const offerHold = 30 * time.Second

// ErrRefused is what [Leases.Commit] and [Leases.Offer] wrap when the address
// cannot be had, as opposed to a disk that does not work: DHCP answers it with
// a NAK, and the other with silence.
var ErrRefused = errors.New("address refused")

// Lease is an address that a machine of a catch-all pool has, or had: an
// expired one is kept, so that the machine gets the same address again, until
// another machine needs it.
type Lease struct {
	MAC      pools.MAC  `json:"mac"`
	Address  netip.Addr `json:"address"`
	Node     string     `json:"node"`
	Pool     string     `json:"pool"`
	Expires  time.Time  `json:"expires"`
	Released bool       `json:"released,omitempty"` // given back before it expired
}

// Active tells whether the lease holds at that time.
func (l Lease) Active(now time.Time) bool { return !l.Released && now.Before(l.Expires) }

// Leases hands out the addresses of catch-all ranges.
//
// A machine keeps its address for as long as nobody else needs it, across
// restarts of either side. A new one gets the address that it asks for when no
// machine ever had it, else one that no machine had, else the one that expired
// first.
type Leases struct {
	// Reserved tells whether an address is a fixed node's own and so never
	// leased. It is called with the lock held and must not call back. Set it
	// before the first Offer; nil reserves none.
	Reserved func(netip.Addr) bool

	store *Store

	mu     sync.Mutex
	byMAC  map[pools.MAC]*entry
	byAddr map[netip.Addr]*entry
	queue  expiryQueue // every entry, the one that expires first on top
	offers offers
	next   map[pools.Range]netip.Addr // where the search for an address that nobody had goes on
	full   map[pools.Range]time.Time  // when that search last found none
}

func newLeases(s *Store) *Leases {
	return &Leases{
		store:  s,
		byMAC:  make(map[pools.MAC]*entry),
		byAddr: make(map[netip.Addr]*entry),
		offers: newOffers(),
		next:   make(map[pools.Range]netip.Addr),
		full:   make(map[pools.Range]time.Time),
	}
}

// load reads the leases of the file. Should a machine have two, as a write
// that failed can leave behind, the one that lasts longer is its own.
func (l *Leases) load(b *bbolt.Bucket) error {
	return b.ForEach(func(key, value []byte) error {
		var lease Lease
		if err := json.Unmarshal(value, &lease); err != nil {
			return fmt.Errorf("lease %x: %w", key, err)
		}
		if addr, ok := netip.AddrFromSlice(key); !ok || addr != lease.Address {
			return fmt.Errorf("lease %x: it says it is for %s", key, lease.Address)
		}
		if old := l.byMAC[lease.MAC]; old != nil {
			if old.Expires.After(lease.Expires) {
				return nil
			}
			l.forget(old)
		}
		l.keep(lease)
		return nil
	})
}

// Offer picks an address for the machine of p, which asks for want (the zero
// Addr when it asks for none), and holds it for about 30 s, in RAM alone. When
// the range has none left, the error names pool and range.
func (l *Leases) Offer(p *pools.Plan, want netip.Addr, now time.Time) (netip.Addr, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offers.expire(now)
	addr, ok := l.pick(p, want, now)
	if !ok {
		return netip.Addr{}, fmt.Errorf("pool %q: no address left in range %s for %s: %w", p.Pool, p.Range, p.MAC, ErrRefused)
	}
	l.offers.hold(p.MAC, addr, now)
	return addr, nil
}

func (l *Leases) pick(p *pools.Plan, want netip.Addr, now time.Time) (netip.Addr, bool) {
	if e := l.byMAC[p.MAC]; e != nil && l.leasable(p, e.Address) && !l.offers.toOther(p.MAC, e.Address, now) {
		return e.Address, true
	}
	if addr, ok := l.offers.of(p.MAC, now); ok && l.leasable(p, addr) && l.free(p.MAC, addr, now) {
		return addr, true
	}
	if l.leasable(p, want) && l.unused(want) {
		return want, true
	}
	if addr, ok := l.searchUnused(p, now); ok {
		return addr, true
	}
	return l.oldestExpired(p, now)
}

// Commit gives addr to the machine of p for p.Lease. It is durable when Commit
// returns nil. The error wraps [ErrRefused] when the address is not one that
// this machine can have.
func (l *Leases) Commit(p *pools.Plan, addr netip.Addr, now time.Time) error {
	w, err := l.commit(p, addr, now)
	if err != nil {
		return err
	}
	return w.wait()
}

func (l *Leases) commit(p *pools.Plan, addr netip.Addr, now time.Time) (*write, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !p.Range.Contains(addr):
		return nil, fmt.Errorf("%s is outside range %s of pool %q: %w", addr, p.Range, p.Pool, ErrRefused)
	case !l.leasable(p, addr):
		return nil, fmt.Errorf("%s belongs to a node of the farm: %w", addr, ErrRefused)
	case !l.free(p.MAC, addr, now):
		return nil, fmt.Errorf("%s belongs to another machine than %s: %w", addr, p.MAC, ErrRefused)
	}
	lease := Lease{MAC: p.MAC, Address: addr, Node: p.Node, Pool: p.Pool, Expires: now.Add(p.Lease.D()).UTC()}
	value, err := json.Marshal(lease)
	if err != nil {
		return nil, fmt.Errorf("lease of %s: %w", addr, err)
	}
	ops := make([]op, 0, 2)
	if old := l.byMAC[p.MAC]; old != nil {
		if old.Address != addr {
			ops = append(ops, op{bucket: bucketLeases, key: old.Address.AsSlice()})
		}
		l.forget(old)
	}
	if old := l.byAddr[addr]; old != nil {
		l.forget(old) // expired, or free would not have said yes
	}
	l.keep(lease)
	l.offers.drop(p.MAC)
	return l.store.enqueue(append(ops, op{bucketLeases, addr.AsSlice(), value})...), nil
}

// Release takes the machine's word that it no longer uses addr. It keeps its
// claim to get the same address again. A lease that it does not have is
// ignored. A RELEASE has no answer, so that one that could not be stored is
// logged: the lease runs out by itself.
func (l *Leases) Release(mac pools.MAC, addr netip.Addr, now time.Time) {
	if w := l.release(mac, addr, now); w != nil {
		if err := w.wait(); err != nil {
			l.store.log.Warn("release is not stored", "mac", mac, "address", addr, "err", err)
		}
	}
}

func (l *Leases) release(mac pools.MAC, addr netip.Addr, now time.Time) *write {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byMAC[mac]
	if e == nil || e.Address != addr || !e.Active(now) {
		return nil
	}
	lease := e.Lease
	lease.Released, lease.Expires = true, now.UTC()
	value, err := json.Marshal(lease)
	if err != nil {
		return failed(err)
	}
	l.forget(e)
	l.keep(lease)
	return l.store.enqueue(op{bucketLeases, addr.AsSlice(), value})
}

// AddressOf returns the address that the machine leased last. One that expired
// counts until another machine gets it: a node does not stop using its address
// because nobody renewed it. One that was released does not.
func (l *Leases) AddressOf(mac pools.MAC) (netip.Addr, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byMAC[mac]
	if e == nil || e.Released {
		return netip.Addr{}, false
	}
	return e.Address, true
}

// MACAt returns the machine that leased addr last; see [Leases.AddressOf].
func (l *Leases) MACAt(addr netip.Addr) (pools.MAC, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byAddr[addr]
	if e == nil || e.Released {
		return pools.MAC{}, false
	}
	return e.MAC, true
}

// List returns every lease, expired and released ones too, by address.
func (l *Leases) List() []Lease {
	l.mu.Lock()
	all := make([]Lease, 0, len(l.byAddr))
	for _, e := range l.byAddr {
		all = append(all, e.Lease)
	}
	l.mu.Unlock()
	slices.SortFunc(all, func(a, b Lease) int { return a.Address.Compare(b.Address) })
	return all
}
