package state

import (
	"net/netip"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state/wal"
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
	due    time.Time     // when another machine can get the address: see free; and the end of any offer of it
	index  int           // in its queue
	stored wal.Ticket    // of its write
	client clientHash    // of the request that it was given to last
}

// inForce reports whether the address is leased or in quarantine at that time.
func (e *keptLease) inForce(now time.Time) bool { return !e.Released && now.Before(e.end) }

// free returns the time since which another machine can get the address: the end of a lease. A
// quarantine yields from its begin to a machine for which nothing else is left.
func (e *keptLease) free() time.Time {
	if e.Declined != "" {
		return e.end.Add(-e.term)
	}
	return e.end
}

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
	if addr, ok := l.oldest(&l.queues, p, now); ok {
		return addr, true
	}
	return l.oldest(&l.bad, p, now)
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

// oldest returns the address of the queues that other machines can get for the longest time.
func (l *Leases) oldest(queues *expiryQueues, p *resolve.Plan, now time.Time) (netip.Addr, bool) {
	var first *keptLease
	for _, q := range queues.within(p.Range) {
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
		l.queueOf(e).fix(e)
	}
	return nil
}

// queueOf returns the queues that have a lease or quarantine.
func (l *Leases) queueOf(e *keptLease) *expiryQueues {
	if e.Declined != "" {
		return &l.bad
	}
	return &l.queues
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
	if e.due = e.free(); offered.After(e.due) {
		e.due = offered
	}
	l.queueOf(e).fix(e)
}

// keep replaces the leases of the machine and of the address by lease. The caller has
// checked that no other machine needs them.
func (l *Leases) keep(lease keptLease) {
	lease.Expires, lease.due = lease.end.UTC(), lease.free()
	e := l.byAddr[lease.Address]
	if e != nil && e.MAC == lease.MAC && (e.Declined == "") == (lease.Declined == "") {
		l.unindex(e)
		lease.index = e.index
		*e = lease
		l.index(e)
		l.queueOf(e).fix(e)
		return
	}
	l.forget(e)
	if lease.Declined == "" {
		l.forget(l.byMAC[lease.MAC])
	}
	e = &lease
	l.byAddr[lease.Address] = e
	if lease.Declined == "" {
		l.byMAC[lease.MAC] = e
		l.index(e)
	} else {
		l.by[e.MAC] = append(l.by[e.MAC], e)
	}
	l.queueOf(e).push(e)
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
	l.queueOf(e).remove(e)
	if e.Declined == "" {
		return
	}
	others := slices.DeleteFunc(l.by[e.MAC], func(o *keptLease) bool { return o == e })
	if l.by[e.MAC] = others; len(others) == 0 {
		delete(l.by, e.MAC)
	}
}
