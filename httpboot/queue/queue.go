package queue

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Queue limits the clients that download at a time. [New] makes one.
type Queue struct {
	slots    int                        // clients that download at a time
	onChange func(running, waiting int) // never nil
	mu       sync.Mutex
	tickets  map[Client]*ticket
	waiting  []*ticket          // in order
	taken    int                // slots
	shares   map[netip.Addr]int // slots of unknown clients, by address
	stopped  chan struct{}
}

// The lifetime of a ticket without a request of its client.
const (
	ticketTime = 20 * time.Second // in the queue
	resumeTime = 5 * time.Second  // with a slot
)

// Client is a client of the queue. All connections of a known machine are one client.
// Another address may be a proxy of many machines: each of its connections is a client.
type Client struct {
	Addr netip.Addr
	Port uint16 // 0 for a known machine
}

// ticket is a client's position in the queue or, once its turn has come, its
// slot.
type ticket struct {
	client Client
	since  time.Time
	first  int           // the first position; 0: it did not wait
	turn   chan struct{} // closed when the ticket gets a slot

	waited   time.Duration // until it got a slot
	requests int           // that wait for the turn
	active   int           // transfers
	served   bool          // a transfer has begun
	whole    bool          // a transfer of the whole file is active
	events   int           // requests and ends of transfers, ever
}

// Turn permits one transfer.
type Turn struct {
	First    bool          // the first transfer of this client; others resume it
	Position int           // the first position in the queue; 0: the client did not wait
	Waited   time.Duration // in the queue

	ticket *ticket
	whole  bool
}

// Errors of [Queue.Enter].
var (
	ErrStopped = errors.New("the server stops")
	ErrTwice   = errors.New("another transfer of the whole image to this machine is under way")
)

// WaitError is the error for a client that has to wait: its position among the waiting
// clients.
type WaitError struct{ Position, Waiting int }

func (e WaitError) Error() string {
	return fmt.Sprintf("%d of %d that wait for an image", e.Position, e.Waiting)
}

// New returns a queue with that number of slots. The queue calls onChange when the number
// of taken slots or of waiting clients may have changed. onChange may be nil, and must
// return at once.
func New(slots int, onChange func(running, waiting int)) *Queue {
	if onChange == nil {
		onChange = func(int, int) {}
	}
	return &Queue{slots: slots, onChange: onChange, tickets: map[Client]*ticket{}, shares: map[netip.Addr]int{}, stopped: make(chan struct{})}
}

// Enter waits for the client's turn, at most for the time hold. whole is true for a
// request for the whole file. The error is that of ctx, [ErrStopped], [ErrTwice] or a
// [WaitError]. If it is nil, the caller has to call [Queue.Leave].
func (q *Queue) Enter(ctx context.Context, c Client, whole bool, hold time.Duration) (Turn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.ticket(c)
	t.requests++
	t.events++
	if !closed(t.turn) {
		q.mu.Unlock()
		q.wait(ctx, t, hold)
		q.mu.Lock()
	}
	t.requests--
	var err error
	switch {
	case closed(q.stopped):
		err = ErrStopped
	case ctx.Err() != nil:
		err = ctx.Err()
	case !closed(t.turn):
		err = WaitError{q.position(t), len(q.waiting)}
	case whole && t.whole:
		err = ErrTwice
	}
	if err != nil {
		q.expire(t)
		return Turn{}, err
	}
	turn := Turn{First: !t.served, Position: t.first, Waited: t.waited, ticket: t, whole: whole}
	t.active++
	t.served, t.whole = true, t.whole || whole
	return turn, nil
}

// Leave ends a transfer. If done is true, the client has got the end of the file, and its
// slot is free. Else the slot is reserved for the client for 5 seconds.
func (q *Queue) Leave(turn Turn, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := turn.ticket
	t.active--
	t.events++
	if turn.whole {
		t.whole = false
	}
	if done && t.active == 0 && t.requests == 0 {
		q.remove(t)
		return
	}
	q.expire(t)
}

// Stop makes Enter return [ErrStopped], for waiting and for later clients.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !closed(q.stopped) {
		close(q.stopped)
	}
}

// Crowded reports whether a client waits.
func (q *Queue) Crowded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// ticket returns the client's ticket, or a new one at the end of the queue.
func (q *Queue) ticket(c Client) *ticket {
	t := q.tickets[c]
	if t != nil {
		return t
	}
	t = &ticket{client: c, since: time.Now(), turn: make(chan struct{})}
	q.tickets[c] = t
	q.waiting = append(q.waiting, t)
	q.advance()
	t.first = q.position(t)
	return t
}

func (q *Queue) wait(ctx context.Context, t *ticket, hold time.Duration) {
	timer := time.NewTimer(hold)
	defer timer.Stop()
	select {
	case <-t.turn:
	case <-timer.C:
	case <-ctx.Done():
	case <-q.stopped:
	}
}

// position returns a ticket's position in the queue, from 1; 0 when it has a
// slot.
func (q *Queue) position(t *ticket) int { return slices.Index(q.waiting, t) + 1 }

// expire removes a ticket after its lifetime, unless its client sends a request before.
func (q *Queue) expire(t *ticket) {
	if t.requests > 0 || t.active > 0 {
		return
	}
	after, events := ticketTime, t.events
	if closed(t.turn) {
		after = resumeTime
	}
	time.AfterFunc(after, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if t.events == events && q.tickets[t.client] == t {
			q.remove(t)
		}
	})
}

// remove removes a ticket and frees its slot or position.
func (q *Queue) remove(t *ticket) {
	delete(q.tickets, t.client)
	if closed(t.turn) {
		q.taken--
		q.share(t, -1)
	} else if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.advance()
}

// advance gives free slots to the first clients. The connections of one unknown address
// get at most half of all slots, so that they cannot stop machines from booting.
func (q *Queue) advance() {
	for i := 0; i < len(q.waiting) && q.taken < q.slots; {
		t := q.waiting[i]
		if t.client.Port != 0 && q.shares[t.client.Addr] >= max(1, q.slots/2) {
			i++
			continue
		}
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.taken++
		q.share(t, 1)
		t.waited = time.Since(t.since)
		close(t.turn)
	}
	q.onChange(q.taken, len(q.waiting))
}

// share counts the slots of unknown clients.
func (q *Queue) share(t *ticket, n int) {
	if t.client.Port == 0 {
		return
	}
	if q.shares[t.client.Addr] += n; q.shares[t.client.Addr] == 0 {
		delete(q.shares, t.client.Addr)
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
