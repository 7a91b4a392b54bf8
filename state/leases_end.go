package state

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state/wal"
)

// quarantine is the time for which a declined address is not assigned. It is a
// compromise, since RFC 2131 leaves the time open. A device that uses an address without
// a lease usually has it configured by hand, and keeps it for days; each new attempt to
// lease the address makes a client restart. It yields to need: a full range gives the address
// anew. The operator can end a quarantine earlier with [Leases.End].
const quarantine = time.Hour

// maxWhy limits the reason of a quarantine, in bytes: a client can supply part of it.
const maxWhy = 200

// Release ends the lease that the machine of p has of addr, if any. The machine gets the same
// address again unless another machine has got it. The end is stored asynchronously: if
// a crash loses it, the lease expires. Release returns false, and does nothing, if the lease has
// another client identifier than the query of p.
func (l *Leases) Release(p *resolve.Plan, addr netip.Addr, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byMAC[p.MAC]
	if e == nil || e.Address != addr || !e.inForce(now) {
		return true
	}
	if e.client.other(hashClient(p.Query().ClientID)) {
		return false
	}
	l.end(e, now)
	return true
}

// Leave ends the lease of a machine that boots again, unless it is a lease of keep.
func (l *Leases) Leave(mac pools.MAC, keep netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byMAC[mac]; e != nil && e.Address != keep && e.inForce(now) {
		l.end(e, now)
	}
}

// Decline puts addr in quarantine for an hour if the machine of p has an offer of it, or a lease
// without another client identifier, else it does nothing and returns false. Nor does it if leases in force leave no room.
// why is the reason that [Leases.List] shows.
func (l *Leases) Decline(p *resolve.Plan, addr netip.Addr, why string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(now)
	mac := p.MAC
	lease := pools.Lease{MAC: mac, Address: addr, Declined: reason(why)}
	if f, ok := l.offers.of(mac, now); ok && f.addr == addr {
		lease.Node, lease.Pool = f.node, f.pool
	} else if e := l.byMAC[mac]; e != nil && e.Address == addr && e.inForce(now) && !e.client.other(hashClient(p.Query().ClientID)) {
		lease.Node, lease.Pool = e.Node, e.Pool
	} else {
		return false
	}
	if !l.makeRoom(mac, addr, now) {
		return false
	}
	l.withdraw(mac)
	// A lease of addr is the machine's own or expired, else it would not be offered.
	l.keepAsync(keptLease{Lease: lease, end: now.Add(quarantine), term: quarantine})
	return true
}

// makeRoom drops what gives way to a quarantine of addr that mac causes. It reports whether there
// is room.
func (l *Leases) makeRoom(mac pools.MAC, addr netip.Addr, now time.Time) bool {
	old := l.byAddr[addr]
	if old != nil && old.Declined != "" { // it takes that place
		l.forget(old)
	}
	evicted, ok := l.excess(mac, 1), true
	if evicted == nil && old == nil {
		evicted, ok = l.surplus(now)
	}
	if evicted != nil {
		l.forget(evicted)
		l.engine.Async(wal.Change{Table: l.table, Key: evicted.Address.AsSlice()})
	}
	return ok
}

// excess returns the quarantine that ends when mac causes more of them, or nil.
func (l *Leases) excess(mac pools.MAC, more int) *keptLease {
	if own := l.by[mac]; len(own)+more > maxDeclined {
		return slices.MinFunc(own, func(a, b *keptLease) int { return a.end.Compare(b.end) })
	}
	if l.bad.len()+more > max(l.limit/quarantineShare, 1) {
		return l.bad.oldest()
	}
	return nil
}

// reason returns why, cut to maxWhy. It is never empty, since an empty reason means no
// quarantine.
func reason(why string) string {
	if why == "" {
		return "declined"
	}
	return clip(why, maxWhy)
}

// clip cuts a text to limit bytes and makes it valid UTF-8.
func clip(s string, limit int) string { return strings.ToValidUTF8(s[:min(len(s), limit)], "?") }

// End ends the lease of an address, or its quarantine, for an operator. It returns false if
// the address has neither, or if that is of another machine than mac. The next request of a
// machine that still uses the address is refused.
func (l *Leases) End(addr netip.Addr, mac pools.MAC, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byAddr[addr]
	if e == nil || e.MAC != mac || !e.inForce(now) {
		return false
	}
	l.end(e, now)
	return true
}

// end ends a lease or a quarantine before its time.
func (l *Leases) end(e *keptLease, now time.Time) {
	lease := *e
	lease.Released, lease.end, lease.stored = true, now, 0
	l.keepAsync(lease)
}

// keepAsync keeps a lease and stores it asynchronously.
func (l *Leases) keepAsync(lease keptLease) {
	lease.Expires = lease.end.UTC()
	l.keep(lease)
	l.engine.Async(putLease(l.table, &lease))
}
