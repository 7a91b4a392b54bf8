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
	ranks    [Stranger + 1]int  // slots taken by clients of each rank
	shares   map[netip.Addr]int // slots of strangers, by address
	stopped  chan struct{}
}

// The lifetime of a ticket without a request of its client.
const (
	ticketTime = 20 * time.Second // in the queue
	resumeTime = 5 * time.Second  // with a slot
)

// Rank is the standing of a client. Clients of a lower rank wait before those of a
// higher one.
type Rank uint8

// The ranks. Booting machines and strangers together have at most half of the slots, and
// strangers a fourth, so that they cannot keep declared machines from booting.
const (
	Declared Rank = iota // a machine that a node declares
	Booting              // another machine, in the middle of a boot
	Stranger             // an address of no such machine; it may be a proxy of many
)

// Client is a client of the queue. All connections of a machine are one client; each
// connection of a stranger is one.
type Client struct {
	Addr netip.Addr
	Port uint16 // 0 for a machine
	Rank Rank
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
	ErrFull    = errors.New("too many clients that are no machines wait for an image")
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
// request for the whole file. The error is that of ctx, [ErrStopped], [ErrTwice],
// [ErrFull] or a [WaitError]. If it is nil, the caller has to call [Queue.Leave].
func (q *Queue) Enter(ctx context.Context, c Client, whole bool, hold time.Duration) (Turn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tickets[c] == nil && c.Rank == Stranger && q.strangers() >= maxStrangers*q.slots {
		return Turn{}, ErrFull
	}
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

// Crowded reports whether a client waits (crowded), and whether one waits whose rank is
// lower than that of c.
func (q *Queue) Crowded(c Client) (crowded, before bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return false, false
	}
	return true, q.waiting[0].client.Rank < c.Rank
}

// maxStrangers is the number of strangers that may wait, for each slot.
const maxStrangers = 4

// strangers returns the number of strangers that wait.
func (q *Queue) strangers() int {
	first := slices.IndexFunc(q.waiting, func(t *ticket) bool { return t.client.Rank == Stranger })
	if first < 0 {
		return 0
	}
	return len(q.waiting) - first
}

// ticket returns the client's ticket, or a new one behind the others of its rank.
func (q *Queue) ticket(c Client) *ticket {
	t := q.tickets[c]
	if t != nil {
		return t
	}
	t = &ticket{client: c, since: time.Now(), turn: make(chan struct{})}
	q.tickets[c] = t
	behind := func(w *ticket) bool { return w.client.Rank > c.Rank }
	at := slices.IndexFunc(q.waiting, behind)
	if at < 0 {
		at = len(q.waiting)
	}
	q.waiting = slices.Insert(q.waiting, at, t)
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
		q.share(t, -1)
	} else if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.advance()
}

// advance gives free slots to the first clients that are not above their share.
func (q *Queue) advance() {
	for i := 0; i < len(q.waiting) && q.taken < q.slots; {
		t := q.waiting[i]
		if q.aboveShare(t.client) {
			i++
			continue
		}
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.share(t, 1)
		t.waited = time.Since(t.since)
		close(t.turn)
	}
	q.onChange(q.taken, len(q.waiting))
}

// Shares of the slots, of which each is one at least.
const (
	undeclaredShare = 2 // half of them: all clients that are not declared
	strangerShare   = 4 // a fourth: strangers
	addressShare    = 8 // an eighth: the connections of one stranger
)

// aboveShare reports whether one more slot for a client would be too many.
func (q *Queue) aboveShare(c Client) bool {
	full := func(taken, share int) bool { return taken >= max(1, q.slots/share) }
	switch {
	case c.Rank == Declared:
		return false
	case full(q.ranks[Booting]+q.ranks[Stranger], undeclaredShare):
		return true
	case c.Rank == Booting:
		return false
	}
	return full(q.ranks[Stranger], strangerShare) || full(q.shares[c.Addr], addressShare)
}

// share counts the slots that are taken.
func (q *Queue) share(t *ticket, n int) {
	q.taken += n
	q.ranks[t.client.Rank] += n
	if t.client.Rank < Stranger {
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
