package state

import (
	"container/heap"
	"net/netip"
	"time"

	"drover/pools"
)

// searchPause is how long a range without an address that nobody had is not
// searched again. The search looks at every address of the range; a machine
// that is turned away asks again within seconds.
const searchPause = time.Second

// entry is a lease with its place in the expiry queue.
type entry struct {
	Lease
	index int
}

// leasable tells whether addr may be leased to anyone under this plan.
func (l *Leases) leasable(p *pools.Plan, addr netip.Addr) bool {
	return p.Range.Contains(addr) && (l.Reserved == nil || !l.Reserved(addr))
}

// unused tells whether no machine has or had addr and none is offered it.
func (l *Leases) unused(addr netip.Addr) bool { return l.byAddr[addr] == nil && !l.offers.has(addr) }

// free tells whether mac may have addr: nobody else holds it now.
func (l *Leases) free(mac pools.MAC, addr netip.Addr, now time.Time) bool {
	if e := l.byAddr[addr]; e != nil && e.MAC != mac && e.Active(now) {
		return false
	}
	return !l.offers.toOther(mac, addr, now)
}

// searchUnused looks for an address that no machine ever had, once around the
// range from where the last search ended.
func (l *Leases) searchUnused(p *pools.Plan, now time.Time) (netip.Addr, bool) {
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
		if l.leasable(p, addr) && l.unused(addr) {
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

// oldestExpired takes the address of the machine that has not needed its own
// for the longest time.
func (l *Leases) oldestExpired(p *pools.Plan, now time.Time) (netip.Addr, bool) {
	var passed []*entry // expired, but not for this plan or offered to another
	defer func() {
		for _, e := range passed {
			heap.Push(&l.queue, e)
		}
	}()
	for len(l.queue) > 0 && !l.queue[0].Active(now) {
		e := l.queue[0]
		if l.leasable(p, e.Address) && !l.offers.toOther(p.MAC, e.Address, now) {
			return e.Address, true
		}
		heap.Pop(&l.queue)
		passed = append(passed, e)
	}
	return netip.Addr{}, false
}

func (l *Leases) keep(lease Lease) {
	e := &entry{Lease: lease}
	l.byMAC[lease.MAC], l.byAddr[lease.Address] = e, e
	heap.Push(&l.queue, e)
}

func (l *Leases) forget(e *entry) {
	if l.byMAC[e.MAC] == e {
		delete(l.byMAC, e.MAC)
	}
	if l.byAddr[e.Address] == e {
		delete(l.byAddr, e.Address)
	}
	heap.Remove(&l.queue, e.index)
}

// expiryQueue is a heap of leases by the time at which they end.
type expiryQueue []*entry

func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].Expires.Before(q[j].Expires) }
func (q expiryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *expiryQueue) Push(x any) {
	e := x.(*entry)
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *expiryQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return e
}
