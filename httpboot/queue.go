package httpboot

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// queue lets a bounded number of visitors fetch root images at a time, in the
// order in which they first asked. A thousand machines that are switched on
// together would else share the network so thinly that none boots for an hour;
// one after the other, the first are up after a minute.
//
// A visitor that comes when all slots are taken gets a ticket. It need not hold
// on to anything: who it is, is its ticket. It keeps its place as long as it
// asks again now and then, loses it when it does not, and a slot that becomes
// free is kept for the first in line until it comes. Nothing of it is stored: a
// server that starts anew begins with an empty line.
type queue struct {
	slots  int           // visitors that fetch at a time
	keep   time.Duration // for how long a ticket lives of which nobody has asked
	linger time.Duration // likewise a slot, after a transfer that was cut: the visitor resumes
	tell   func(running, waiting int)

	mu      sync.Mutex
	tickets map[visitor]*ticket
	line    []*ticket          // those that wait, the first first
	taken   int                // slots
	shares  map[netip.Addr]int // slots of strangers, by their address
	stopped chan struct{}
}

// visitor is who fetches an image. Of a machine that is known, all connections
// are one visitor. Behind an address that is no machine's there may be many
// (a caching proxy); each of its connections is one.
type visitor struct {
	addr netip.Addr
	port uint16 // 0 for a machine that is known
}

// ticket is a visitor's place in the line or, once its turn has come, its slot.
type ticket struct {
	who   visitor
	since time.Time
	first int           // place in the line at first; 0 when there was none
	turn  chan struct{} // closed when it has a slot

	waited time.Duration // until then
	asking int           // requests that wait here
	active int           // transfers
	served bool          // there was a transfer
	whole  bool          // one of them is of the whole file
	visits int           // how often it has come or gone
}

// pass is the leave to make one transfer.
type pass struct {
	*ticket
	all   bool          // of the whole file
	first bool          // of this ticket; the others resume
	place int           // in the line at first; 0 when there was none
	took  time.Duration // until the ticket's turn came
}

// Why enter lets nobody in.
var (
	errStopping = errors.New("the server stops")
	errFetching = errors.New("another transfer of the whole image to this machine is under way")
)

// notYet is a visitor whose turn has not come.
type notYet struct{ place, of int }

func (notYet) Error() string { return "the turn has not come" }

func newQueue(slots int, tell func(running, waiting int)) *queue {
	if tell == nil {
		tell = func(int, int) {}
	}
	return &queue{
		slots: slots, keep: 20 * time.Second, linger: 5 * time.Second, tell: tell,
		tickets: map[visitor]*ticket{}, shares: map[netip.Addr]int{}, stopped: make(chan struct{}),
	}
}

// enter waits for the visitor's turn, for as long as hold; whole says that it
// wants all of the file. The error is ctx's, errStopping, errFetching or a
// notYet. Without an error, leave must be called.
func (q *queue) enter(ctx context.Context, who visitor, whole bool, hold time.Duration) (pass, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.ticket(who)
	t.asking++
	t.visits++
	if !t.called() {
		q.mu.Unlock()
		q.wait(ctx, t, hold)
		q.mu.Lock()
	}
	t.asking--
	var err error
	switch {
	case q.isStopped():
		err = errStopping
	case ctx.Err() != nil:
		err = ctx.Err()
	case !t.called():
		err = notYet{q.place(t), len(q.line)}
	case whole && t.whole:
		err = errFetching
	}
	if err != nil {
		q.away(t)
		return pass{}, err
	}
	p := pass{t, whole, !t.served, t.first, t.waited}
	t.active++
	t.served, t.whole = true, t.whole || whole
	return p, nil
}

// leave ends a transfer. A visitor that got the file to its end gives its slot
// back; of another it is kept for a moment.
func (q *queue) leave(p pass, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := p.ticket
	t.active--
	t.visits++
	if p.all {
		t.whole = false
	}
	if done && t.active == 0 && t.asking == 0 {
		q.drop(t)
		return
	}
	q.away(t)
}

// stop sends away who waits, and who comes.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isStopped() {
		close(q.stopped)
	}
}

// crowded tells whether anybody waits.
func (q *queue) crowded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.line) > 0
}

// ticket returns the visitor's, or a new one at the end of the line.
func (q *queue) ticket(who visitor) *ticket {
	t := q.tickets[who]
	if t != nil {
		return t
	}
	t = &ticket{who: who, since: time.Now(), turn: make(chan struct{})}
	q.tickets[who] = t
	q.line = append(q.line, t)
	q.advance()
	t.first = q.place(t)
	return t
}

func (q *queue) wait(ctx context.Context, t *ticket, hold time.Duration) {
	patience := time.NewTimer(hold)
	defer patience.Stop()
	select {
	case <-t.turn:
	case <-patience.C:
	case <-ctx.Done():
	case <-q.stopped:
	}
}

// place is where in the line a ticket is, from 1; 0 when it has a slot.
func (q *queue) place(t *ticket) int {
	if t.called() {
		return 0
	}
	return slices.Index(q.line, t) + 1
}

// away has a ticket die in a while, unless the visitor comes again.
func (q *queue) away(t *ticket) {
	if t.asking > 0 || t.active > 0 {
		return
	}
	after, visits := q.keep, t.visits
	if t.called() {
		after = q.linger
	}
	time.AfterFunc(after, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if t.visits == visits && q.tickets[t.who] == t {
			q.drop(t)
		}
	})
}

// drop takes a ticket back, and its slot or its place.
func (q *queue) drop(t *ticket) {
	delete(q.tickets, t.who)
	if t.called() {
		q.taken--
		q.share(t, -1)
	} else if i := slices.Index(q.line, t); i >= 0 {
		q.line = slices.Delete(q.line, i, i+1)
	}
	q.advance()
}

// advance gives slots that are free to those who are first. Connections of one
// stranger have half of all slots at most, so that it cannot keep machines from
// booting.
func (q *queue) advance() {
	for i := 0; i < len(q.line) && q.taken < q.slots; {
		t := q.line[i]
		if t.who.port != 0 && q.shares[t.who.addr] >= max(1, q.slots/2) {
			i++
			continue
		}
		q.line = slices.Delete(q.line, i, i+1)
		q.taken++
		q.share(t, 1)
		t.waited = time.Since(t.since)
		close(t.turn)
	}
	q.tell(q.taken, len(q.line))
}

// share counts the slots of strangers.
func (q *queue) share(t *ticket, n int) {
	if t.who.port == 0 {
		return
	}
	if q.shares[t.who.addr] += n; q.shares[t.who.addr] == 0 {
		delete(q.shares, t.who.addr)
	}
}

func (q *queue) isStopped() bool {
	select {
	case <-q.stopped:
		return true
	default:
		return false
	}
}

// called tells whether the ticket's turn has come.
func (t *ticket) called() bool {
	select {
	case <-t.turn:
		return true
	default:
		return false
	}
}
