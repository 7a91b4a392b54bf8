package state

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
	"unique"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state/wal"
)

// offerHold is the time for which an offered address is reserved. A PXE ROM collects
// offers for up to 4 s and retries with pauses of up to 32 s (PXE 2.1, 2.2.3). With a
// shorter time two machines could get the same address when many start at once.
const offerHold = 30 * time.Second

// maxOverlap limits [overlap]. The time from the first DHCP packet of a boot to the first
// one of the operating system is often shorter.
const maxOverlap = time.Minute

// maxLeases limits the leases and quarantines, including those outside of ranges, of
// some 300 bytes each. At the limit a new one replaces the one that ended first. If all are
// in force, a lease replaces the oldest quarantine.
const maxLeases = 1 << 18

// quarantineShare is the part of maxLeases that quarantines have at most. At the limit a new one
// replaces the oldest: one host that declines addresses for invented MACs must not fill the table.
const quarantineShare = 8

// maxDeclined limits the quarantines that one machine causes. With one more its oldest ends: a card
// that declines every address must not put a whole range out of service.
const maxDeclined = 4

// Leases assigns the addresses of catch-all ranges, and remembers the machines at
// addresses outside of ranges and config.
//
// A machine keeps its address, across restarts of either side, until another machine
// needs it. A new machine gets the address that it requests if no machine ever had it,
// else one that no machine ever had, else the one that expired first, else the one that has been
// in quarantine longest, as fresh: the caller probes it again. No address is leased to two machines
// at a time, and no machine has two leases.
type Leases struct {
	// Reserved reports whether an address belongs to a node of the farm in force now. A
	// plan may be of the farm before. Set it before the first lease; nil is allowed.
	Reserved func(netip.Addr) bool

	engine engine
	table  wal.TableID
	limit  int // maxLeases

	opened time.Time

	mu     sync.Mutex
	byMAC  map[pools.MAC]*keptLease   // leases; not those that were declined
	byAddr map[netip.Addr]*keptLease  // all
	byNode map[string]*keptLease      // the newest lease of a node whose name is not made from its MAC
	queues expiryQueues               // leases, by the time at which other machines can get the address
	bad    expiryQueues               // quarantines, by the time since which others can get the address at need
	by     map[pools.MAC][]*keptLease // quarantines, by the machine that declined
	offers offers
	next   map[pools.Range]netip.Addr // where the next search for an unused address begins
	full   map[pools.Range]time.Time  // when that search last found no address
	clock  time.Time                  // the latest time that a caller gave

	inspected int // leases that searches for an expired one have inspected
}

func newLeases(e engine, table wal.TableID, o Options) *Leases {
	return &Leases{
		engine: e,
		table:  table,
		limit:  maxLeases,
		opened: o.Now(),
		byMAC:  make(map[pools.MAC]*keptLease),
		byAddr: make(map[netip.Addr]*keptLease),
		byNode: make(map[string]*keptLease),
		queues: newExpiryQueues(),
		bad:    newExpiryQueues(),
		by:     make(map[pools.MAC][]*keptLease),
		offers: newOffers(),
		next:   make(map[pools.Range]netip.Addr),
		full:   make(map[pools.Range]time.Time),
	}
}

// load adds a lease, which ends no later than its term from now. If a machine has two,
// which a failed write can cause, it keeps the one that lasts longer.
func (l *Leases) load(key, value []byte) error {
	lease, err := parseLease(key, value)
	if err != nil {
		return fmt.Errorf("lease %x: %w", key, err)
	}
	lease.end = within(lease.Expires, lease.term, l.opened)
	if old := l.byMAC[lease.MAC]; old != nil && lease.Declined == "" && old.end.After(lease.end) {
		return nil
	}
	lease.Pool = unique.Make(lease.Pool).Value() // shares one string between leases
	l.keep(lease)
	if lease.Declined != "" {
		l.forget(l.excess(lease.MAC, 0)) // the snapshot of the start omits it
	}
	return nil
}

func (l *Leases) each(put func(key, value []byte), between func() error) error {
	var value []byte
	return wal.Visit(&l.mu, l.byAddr, func(addr netip.Addr, e *keptLease) error {
		value = appendLease(value[:0], e)
		put(addr.AsSlice(), value)
		return nil
	}, between)
}

// Offer chooses an address for the machine of p and reserves it for about 30 s, in RAM
// only. want is the address that the machine requests, or the zero Addr. fresh reports
// that the machine neither has a lease of the address nor was offered it before: another
// device may use it without a lease, so the caller can probe it. If the range has no
// address left, the error wraps [pools.ErrRefused] and names pool and range.
func (l *Leases) Offer(p *resolve.Plan, want netip.Addr, now time.Time) (addr netip.Addr, fresh bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(now)
	l.offers.expire(now)
	addr, ok := l.pick(p, want, now)
	if !ok {
		return netip.Addr{}, false, fmt.Errorf("pool %q: no address left in range %s for %s: %w", p.Pool, p.Range, p.MAC, pools.ErrRefused)
	}
	f, held := l.offers.of(p.MAC, now)
	e := l.byMAC[p.MAC]
	known := held && f.addr == addr || e != nil && e.Address == addr
	l.hold(p, addr, now)
	return addr, !known, nil
}

// Commit leases addr to the machine of p for p.Lease, plus [overlap]. The lease is in
// force in RAM at once. It is durable when wait returns nil; acknowledge it only then.
// Commits become durable in their order. wait may be called more than once. The address
// need not be in p.Range: a machine may keep an older one.
//
// Commit never blocks. The error wraps [pools.ErrRefused] if the address belongs to
// another node, is in quarantine, is offered to another machine, or is leased to
// another machine. A node's own address, p.Address, and one that Offer gave the machine, is not
// refused for a quarantine; the node's own moves between its MACs at any time. After any other error, such as
// [wal.ErrBusy], nothing has changed.
func (l *Leases) Commit(p *resolve.Plan, addr netip.Addr, now time.Time) (wait func() error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(now)
	if err := l.refusal(p, addr, now); err != nil {
		return nil, err
	}
	term := p.Lease.D() + overlap(p)
	end := now.Add(term)
	old := l.byMAC[p.MAC]
	if old != nil && old.serves(p, addr, now.Add(p.Lease.D())) && !l.engine.Lost(old.stored) {
		l.withdraw(p.MAC)
		if client := hashClient(p.Query().ClientID); client != old.client {
			old.client = client // another program of the same boot, which need not wait for the disk
			l.engine.Async(putLease(l.table, old))
		}
		return l.waitFor(old.stored), nil
	}
	evicted, err := l.evict(p.MAC, addr, now)
	if err != nil {
		return nil, err
	}
	changes := make([]wal.Change, 0, 3)
	if evicted != nil {
		changes = append(changes, wal.Change{Table: l.table, Key: evicted.Address.AsSlice()})
	}
	if old != nil && old.Address != addr {
		changes = append(changes, wal.Change{Table: l.table, Key: old.Address.AsSlice()})
	}
	lease := keptLease{
		Lease: pools.Lease{MAC: p.MAC, Address: addr, Node: p.Node, Pool: p.Pool, Expires: end.UTC()},
		end:   end, term: term, client: hashClient(p.Query().ClientID),
	}
	if lease.stored, err = l.engine.Put(append(changes, putLease(l.table, &lease))...); err != nil {
		return nil, fmt.Errorf("lease of %s: %w", addr, err)
	}
	l.withdraw(p.MAC)
	l.forget(evicted)
	l.keep(lease)
	return l.waitFor(lease.stored), nil
}

func (l *Leases) waitFor(t wal.Ticket) func() error {
	return func() error { return l.engine.Wait(t) }
}

// overlap is the time for which a lease lasts longer than its machine knows. PXE ROM,
// iPXE, initramfs and operating system request the same address one after the other.
// All requests within this time need a single write.
func overlap(p *resolve.Plan) time.Duration { return min(p.Lease.D()/5, maxOverlap) }

// serves reports whether the lease satisfies a request of the machine of p for addr until
// end without a write.
func (e *keptLease) serves(p *resolve.Plan, addr netip.Addr, end time.Time) bool {
	surplus := e.end.Sub(end)
	return e.Address == addr && !e.Released && e.Node == p.Node && e.Pool == p.Pool &&
		0 <= surplus && surplus <= overlap(p)
}

// refusal returns the reason why the machine of p cannot have addr, or nil.
func (l *Leases) refusal(p *resolve.Plan, addr netip.Addr, now time.Time) error {
	own := addr == p.Address
	switch e := l.byAddr[addr]; {
	case !addr.IsValid():
		return fmt.Errorf("no address for %s: %w", p.MAC, pools.ErrRefused)
	case !own && (p.Reserved(addr) || l.Reserved != nil && l.Reserved(addr)):
		return fmt.Errorf("%s belongs to a node of the farm: %w", addr, pools.ErrRefused)
	case l.offers.toOther(p.MAC, addr, now):
		return fmt.Errorf("%s is offered to another machine than %s: %w", addr, p.MAC, pools.ErrRefused)
	case e == nil || !e.inForce(now):
		return nil
	case e.Declined != "" && !own && !l.offers.toSame(p.MAC, addr, now):
		return fmt.Errorf("%s is in quarantine until %s (%s declined it: %s): %w", addr, e.Expires.Format(time.RFC3339), e.MAC, e.Declined, pools.ErrRefused)
	case e.Declined == "" && e.MAC != p.MAC && (!own || e.Node != p.Node):
		return fmt.Errorf("%s is leased to %s until %s, not to %s: %w", addr, e.MAC, e.Expires.Format(time.RFC3339), p.MAC, pools.ErrRefused)
	}
	return nil
}

// evict returns the lease that a new lease of addr for mac replaces, or nil if the limit
// is not reached. The error wraps [pools.ErrRefused] if all leases are in force.
func (l *Leases) evict(mac pools.MAC, addr netip.Addr, now time.Time) (evicted *keptLease, err error) {
	if l.byAddr[addr] != nil || l.byMAC[mac] != nil {
		return nil, nil // no lease to evict
	}
	evicted, ok := l.surplus(now)
	if !ok {
		return nil, fmt.Errorf("%s for %s: there are %d leases in force: %w", addr, mac, len(l.byAddr), pools.ErrRefused)
	}
	return evicted, nil
}

// surplus returns what gives way to a new entry: nil if the limit is not reached. ok is false if
// all entries are leases in force.
func (l *Leases) surplus(now time.Time) (e *keptLease, ok bool) {
	if len(l.byAddr) < l.limit {
		return nil, true
	}
	if first := l.queues.oldest(); first != nil && !first.inForce(now) {
		return first, true
	}
	e = l.bad.oldest()
	return e, e != nil
}

// Holds returns the address of the machine's lease if that is in force at that time.
func (l *Leases) Holds(mac pools.MAC, now time.Time) (netip.Addr, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(now)
	if e := l.byMAC[mac]; e != nil && e.inForce(now) {
		return e.Address, true
	}
	return netip.Addr{}, false
}

// Offered returns the pool of the offer to a machine that has not taken it yet, or "".
func (l *Leases) Offered(mac pools.MAC, now time.Time) (pool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f, ok := l.offers.of(mac, now); ok {
		return f.pool
	}
	return ""
}

// Of returns the lease of a machine. It returns an expired lease until another machine
// gets the address, since a node may use its address without renewing the lease. It does
// not return a lease that was released or declined.
func (l *Leases) Of(mac pools.MAC) (pools.Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byMAC[mac].lease()
}

// At returns the lease of an address by the rules of [Leases.Of].
func (l *Leases) At(addr netip.Addr) (pools.Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byAddr[addr].lease()
}

// Named returns the newest lease that a machine got as the node of that name, even if
// the lease was released.
func (l *Leases) Named(node string) (pools.Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byNode[node]
	if e == nil {
		if mac, ok := pools.CatchAllMAC(node); ok {
			e = l.byMAC[mac]
		}
	}
	if e == nil || e.Node != node {
		return pools.Lease{}, false
	}
	return e.Lease, true
}

// ByPool returns the number of leases in force, by pool.
func (l *Leases) ByPool(now time.Time) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := make(map[string]int)
	for _, e := range l.byMAC {
		if e.inForce(now) {
			count[e.Pool]++
		}
	}
	return count
}

// InForce returns the addresses that are leased or in quarantine, in no order.
func (l *Leases) InForce(now time.Time) (all []netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a, e := range l.byAddr {
		if e.inForce(now) {
			all = append(all, a)
		}
	}
	return all
}

// List returns all leases and quarantines, including those that have ended, sorted by
// address.
func (l *Leases) List() []pools.Lease {
	l.mu.Lock()
	all := make([]pools.Lease, 0, len(l.byAddr))
	for _, e := range l.byAddr {
		all = append(all, e.Lease)
	}
	l.mu.Unlock()
	slices.SortFunc(all, func(a, b pools.Lease) int { return a.Address.Compare(b.Address) })
	return all
}
