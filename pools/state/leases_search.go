package state

import (
	"container/heap"
	"net/netip"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/pools/state/wal"
)

// searchPause is the time for which a range is not searched again after a search without
// a result. A search inspects every address of the range, and a machine without an offer
// repeats its DISCOVER within seconds.
const searchPause = time.Second

// reservedPause is the time for which a search skips an address that has a lease and
// now belongs to a node of the farm.
const reservedPause = time.Minute

// keptLease is a lease in the indexes of Leases.
type keptLease struct {
	pools.Lease
	end    time.Time     // Expires, on the monotonic clock too
	term   time.Duration // from a commit to the end: the lease never lasts longer from now
	due    time.Time     // when another machine can get the address: the end of the lease and of any offer of it
	index  int           // in its queue
	place  int           // in the queue of quarantines, if it is one
	stored wal.Ticket    // of its write
}

// inForce reports whether the address is leased or in quarantine at that time.
func (e *keptLease) inForce(now time.Time) bool { return !e.Released && now.Before(e.end) }

// used reports whether the machine may still use the address. A nil lease is not
// used.
func (e *keptLease) used() bool { return e != nil && !e.Released && e.Declined == "" }

// lease returns the lease if its machine may still use the address.
func (e *keptLease) lease() (pools.Lease, bool) {
	if !e.used() {
		return pools.Lease{}, false
	}
	return e.Lease, true
}

// nameOf returns the key of a lease in byNode. It is empty for a lease that is not in
// byNode: a name made from the MAC needs no index.
func nameOf(e *keptLease) string {
	if e.Declined != "" || e.Node == pools.CatchAllName(e.MAC) {
		return ""
	}
	return e.Node
}

// index adds e to byNode, unless the node has a lease that lasts longer.
func (l *Leases) index(e *keptLease) {
	name := nameOf(e)
	if old := l.byNode[name]; name != "" && (old == nil || !old.end.After(e.end)) {
		l.byNode[name] = e
	}
}

// unindex removes e from byNode.
func (l *Leases) unindex(e *keptLease) {
	if name := nameOf(e); l.byNode[name] == e {
		delete(l.byNode, name)
	}
}

// keepable reports whether addr is in the plan's range and no node's own.
func keepable(p *resolve.Plan, addr netip.Addr) bool {
	return p.Range.Contains(addr) && !p.Reserved(addr)
}

// leasable reports whether a machine without a lease of addr can get it: no server that
// the config names has it.
func leasable(p *resolve.Plan, addr netip.Addr) bool { return keepable(p, addr) && !p.Serves(addr) }

// unused reports whether no machine has, had or is offered addr.
func (l *Leases) unused(addr netip.Addr) bool { return l.byAddr[addr] == nil && !l.offers.has(addr) }

// pick chooses the address to offer.
func (l *Leases) pick(p *resolve.Plan, want netip.Addr, now time.Time) (netip.Addr, bool) {
	if e := l.byMAC[p.MAC]; e != nil && keepable(p, e.Address) && !l.offers.toOther(p.MAC, e.Address, now) {
		return e.Address, true
	}
	if f, ok := l.offers.of(p.MAC, now); ok && leasable(p, f.addr) { // no other machine can have got it since
		return f.addr, true
	}
	if leasable(p, want) && l.unused(want) {
		return want, true
	}
	if addr, ok := l.searchUnused(p, now); ok {
		return addr, true
	}
	return l.oldestExpired(p, now)
}

// searchUnused returns an address that no machine ever had. It searches the range once,
// from the end of the previous search.
func (l *Leases) searchUnused(p *resolve.Plan, now time.Time) (netip.Addr, bool) {
	r := p.Range
	if t, ok := l.full[r]; !r.IsValid() || ok && now.Sub(t) < searchPause && !now.Before(t) {
		return netip.Addr{}, false
	}
	start, ok := l.next[r]
	if !ok {
		start = r.First
	}
	for addr := start; ; {
		next := addr.Next()
		if !r.Contains(next) {
			next = r.First
		}
		if leasable(p, addr) && l.unused(addr) {
			l.next[r] = next
			delete(l.full, r)
			return addr, true
		}
		if addr = next; addr == start {
			l.full[r] = now
			return netip.Addr{}, false
		}
	}
}

// oldestExpired returns the address whose lease ended first.
func (l *Leases) oldestExpired(p *resolve.Plan, now time.Time) (netip.Addr, bool) {
	var first *keptLease
	for _, q := range l.queues.within(p.Range) {
		if e := l.expired(q, p, now); e != nil && (first == nil || e.due.Before(first.due)) {
			first = e
		}
	}
	if first == nil {
		return netip.Addr{}, false
	}
	return first.Address, true
}

// expired returns the lease of a queue that ended first, or nil. Addresses of nodes move
// back in the queue, so that not every search inspects them again.
func (l *Leases) expired(q *expiryQueue, p *resolve.Plan, now time.Time) *keptLease {
	for len(*q) > 0 {
		e := (*q)[0]
		l.inspected++
		if now.Before(e.due) {
			return nil
		}
		if leasable(p, e.Address) {
			return e
		}
		e.due = now.Add(reservedPause)
		l.queues.fix(e)
	}
	return nil
}

// hold offers addr to the machine of p, instead of an earlier offer.
func (l *Leases) hold(p *resolve.Plan, addr netip.Addr, now time.Time) {
	if f, ok := l.offers.byMAC[p.MAC]; ok && f.addr != addr {
		l.withdraw(p.MAC)
	}
	l.offers.hold(p, addr, now)
	l.setDue(addr, l.offers.byMAC[p.MAC].expires)
}

// withdraw ends the offer to a machine.
func (l *Leases) withdraw(mac pools.MAC) {
	if f, ok := l.offers.byMAC[mac]; ok {
		l.offers.drop(mac)
		l.setDue(f.addr, time.Time{})
	}
}

// setDue moves the lease of addr, if there is one, to its position in the queue. offered
// is the end of an offer of addr. An offered address moves back, so that a flood of
// DISCOVERs does not make each search skip all earlier offers.
func (l *Leases) setDue(addr netip.Addr, offered time.Time) {
	e := l.byAddr[addr]
	if e == nil {
		return
	}
	if e.due = e.end; offered.After(e.due) {
		e.due = offered
	}
	l.queues.fix(e)
}

// keep replaces the leases of the machine and of the address by lease. The caller has
// checked that no other machine needs them. term is the time from its commit to its end.
func (l *Leases) keep(lease pools.Lease, end time.Time, term time.Duration, t wal.Ticket) {
	lease.Expires = end.UTC()
	e := l.byAddr[lease.Address]
	if e != nil && e.MAC == lease.MAC && (e.Declined == "") == (lease.Declined == "") {
		l.unindex(e)
		e.Lease, e.end, e.term, e.due, e.stored = lease, end, term, end, t
		l.index(e)
		l.queues.fix(e)
		if e.Declined != "" {
			heap.Fix(&l.bad, e.place)
		}
		return
	}
	l.forget(e)
	if lease.Declined == "" {
		l.forget(l.byMAC[lease.MAC])
	}
	e = &keptLease{Lease: lease, end: end, term: term, due: end, stored: t}
	l.byAddr[lease.Address] = e
	if lease.Declined == "" {
		l.byMAC[lease.MAC] = e
		l.index(e)
	} else {
		heap.Push(&l.bad, e)
	}
	l.queues.push(e)
}

// forget removes a lease from the indexes. It does nothing for nil.
func (l *Leases) forget(e *keptLease) {
	if e == nil {
		return
	}
	if l.byMAC[e.MAC] == e {
		delete(l.byMAC, e.MAC)
	}
	delete(l.byAddr, e.Address)
	l.unindex(e)
	l.queues.remove(e)
	if e.Declined != "" {
		heap.Remove(&l.bad, e.place)
	}
}
