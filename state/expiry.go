package state

import (
	"container/heap"
	"net/netip"
	"slices"

	"drover/pools"
)

// expiryQueues holds leases, or quarantines, by the time at which other machines can get their
// address. Each range that machines asked for has a heap of its own, and so has the
// space between the ranges. Ranges that overlap share heaps.
type expiryQueues struct {
	first []netip.Addr   // of each heap; sorted, the zero Addr is before all addresses
	heaps []*expiryQueue // a heap ends where the next one begins
	known map[pools.Range]bool
}

func newExpiryQueues() expiryQueues {
	return expiryQueues{first: []netip.Addr{{}}, heaps: []*expiryQueue{{}}, known: make(map[pools.Range]bool)}
}

// find returns the index of the heap for an address.
func (q *expiryQueues) find(addr netip.Addr) int {
	i, begins := slices.BinarySearchFunc(q.first, addr, netip.Addr.Compare)
	if begins {
		return i
	}
	return i - 1
}

func (q *expiryQueues) of(e *keptLease) *expiryQueue { return q.heaps[q.find(e.Address)] }

func (q *expiryQueues) push(e *keptLease)   { heap.Push(q.of(e), e) }
func (q *expiryQueues) fix(e *keptLease)    { heap.Fix(q.of(e), e.index) }
func (q *expiryQueues) remove(e *keptLease) { heap.Remove(q.of(e), e.index) }

// within returns the heaps of the addresses of a range.
func (q *expiryQueues) within(r pools.Range) []*expiryQueue {
	if !r.IsValid() || r.Last.Less(r.First) {
		return nil
	}
	if !q.known[r] {
		q.known[r] = true
		q.split(r.First)
		if after := r.Last.Next(); after.IsValid() {
			q.split(after)
		}
	}
	return q.heaps[q.find(r.First) : q.find(r.Last)+1]
}

// split begins a heap at an address.
func (q *expiryQueues) split(at netip.Addr) {
	i := q.find(at)
	if q.first[i] == at {
		return
	}
	lower, upper := &expiryQueue{}, &expiryQueue{}
	for _, e := range *q.heaps[i] {
		half := lower
		if !e.Address.Less(at) {
			half = upper
		}
		e.index = len(*half)
		*half = append(*half, e)
	}
	heap.Init(lower)
	heap.Init(upper)
	q.heaps[i] = lower
	q.first = slices.Insert(q.first, i+1, at)
	q.heaps = slices.Insert(q.heaps, i+1, upper)
}

// oldest returns the lease whose address other machines can get first, or nil if there
// is no lease.
func (q *expiryQueues) oldest() (first *keptLease) {
	for _, h := range q.heaps {
		if len(*h) > 0 && (first == nil || (*h)[0].due.Before(first.due)) {
			first = (*h)[0]
		}
	}
	return first
}

// len returns the number of leases.
func (q *expiryQueues) len() (n int) {
	for _, h := range q.heaps {
		n += len(*h)
	}
	return n
}

// restore puts all leases in order after their times changed.
func (q *expiryQueues) restore() {
	for _, h := range q.heaps {
		heap.Init(h)
	}
}

// expiryQueue is a heap of leases by due.
type expiryQueue []*keptLease

func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q expiryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *expiryQueue) Push(x any) {
	e := x.(*keptLease)
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
