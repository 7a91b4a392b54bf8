// Package neighbor finds out whether a host on the wire has an address: of IPv4 by ARP, of IPv6 by
// neighbour discovery. It asks the host with one MAC only, by unicast, and reads the answers from
// frames. No host behind a router can answer, and an answer in the name of another address or MAC
// changes nothing: unlike the kernel's table, which has one MAC for each address.
//
// A [Conn] has the sockets; a [Table] has the questions and answers.
package neighbor

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"drover/pools"
)

const (
	// firstAsk is the pause after the first question; each further one is twice as
	// long. A host answers within a millisecond.
	firstAsk = 20 * time.Millisecond

	// confirmed is how long an answer counts.
	confirmed = 10 * time.Second

	maxQuestions = 1024 // under way at a time
	maxWaiting   = 256  // callers that wait for one answer
)

// Host is a host on the wire.
type Host struct {
	Addr netip.Addr
	MAC  pools.MAC
}

// wire asks hosts, as a [Conn] does.
type wire interface {
	ask(h Host) error
	// source returns the asking host's own address on the network of a; the zero Addr if a is not on
	// the wire.
	source(a netip.Addr) netip.Addr
}

// Table has the hosts that are asked, and those that have answered. Set its fields, then pass what
// [Conn.Hear] hears to Seen.
type Table struct {
	Conn wire
	Log  *slog.Logger
	Now  func() time.Time

	mu      sync.Mutex
	asked   map[Host]*question
	sure    map[Host]time.Time // those that have answered
	ended   bool
	running sync.WaitGroup // answers that are passed on
}

// question is one that a host has not answered yet.
type question struct {
	then  []func(bool)
	pause time.Duration // until the next attempt
	left  time.Duration // after that
	timer *time.Timer
}

// Ask calls then once, possibly in another goroutine: with true when the host says that
// it has the address, and with false when its time is over. It returns false, and never
// calls then, when too many wait for the answer. Of too many questions under way one
// gets no answer: hosts that are there answer before it is theirs.
func (t *Table) Ask(h Host, patience time.Duration, then func(bool)) bool {
	t.mu.Lock()
	if at, ok := t.sure[h]; ok && t.Now().Sub(at) < confirmed {
		t.mu.Unlock()
		then(true)
		return true
	}
	q := t.asked[h]
	switch {
	case t.ended, q != nil && len(q.then) >= maxWaiting:
		t.mu.Unlock()
		return false
	case q != nil:
		q.then = append(q.then, then)
		t.mu.Unlock()
		return true
	}
	var given *question // up
	if len(t.asked) >= maxQuestions {
		for other := range t.asked {
			given = t.take(other)
			break
		}
	}
	if t.asked == nil {
		t.asked, t.sure = map[Host]*question{}, map[Host]time.Time{}
	}
	q = &question{then: []func(bool){then}, pause: firstAsk, left: patience - firstAsk}
	t.asked[h] = q
	q.timer = time.AfterFunc(q.pause, func() { t.again(h, q) })
	t.send(h)
	t.mu.Unlock()
	if given != nil {
		t.answer(given, false)
	}
	return true
}

// again repeats a question, or gives up.
func (t *Table) again(h Host, q *question) {
	t.mu.Lock()
	if t.asked[h] != q {
		t.mu.Unlock()
		return
	}
	if q.left > 0 {
		q.pause = min(2*q.pause, q.left)
		q.left -= q.pause
		q.timer.Reset(q.pause)
		t.send(h)
		t.mu.Unlock()
		return
	}
	t.take(h)
	t.mu.Unlock()
	t.answer(q, false)
}

// Seen ends the question about a host that says that it has an address.
func (t *Table) Seen(h Host) {
	t.mu.Lock()
	q := t.take(h)
	if q == nil {
		t.mu.Unlock()
		return
	}
	if len(t.sure) >= maxQuestions {
		clear(t.sure)
	}
	t.sure[h] = t.Now()
	t.mu.Unlock()
	t.answer(q, true)
}

// take ends a question; answer must follow. It returns nil if there is none. The caller holds
// the lock.
func (t *Table) take(h Host) *question {
	q := t.asked[h]
	if q != nil {
		delete(t.asked, h)
		q.timer.Stop()
		t.running.Add(1)
	}
	return q
}

// answer passes the answer to a question on.
func (t *Table) answer(q *question, ok bool) {
	defer t.running.Done()
	for _, then := range q.then {
		then(ok)
	}
}

// Stop ends all questions without an answer.
func (t *Table) Stop() {
	t.mu.Lock()
	t.ended = true
	var left []*question
	for h := range t.asked {
		left = append(left, t.take(h))
	}
	t.mu.Unlock()
	for _, q := range left {
		t.answer(q, false)
	}
	t.running.Wait()
}

// send asks a host. An answer that is missing is asked for again. The caller holds the
// lock.
func (t *Table) send(h Host) {
	if err := t.Conn.ask(h); err != nil {
		t.Log.Debug("dhcp: question to a neighbour", "address", h.Addr, "mac", h.MAC, "error", err)
	}
}
