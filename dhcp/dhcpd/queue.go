package dhcpd

import (
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
)

// request is a packet that waits for a worker.
type request struct {
	dhcp.Request
	sender   dhcp.Sender
	replyTo  netip.AddrPort // for a request to the boot port: its sender; else zero
	known    bool           // it is from a machine that has room of its own
	received time.Time
	packet   []byte // own memory, that the next packet uses again
}

// parse makes r the request of a packet, which it copies: thousands may wait, and few are as long
// as a buffer must be.
func (r *request) parse(packet []byte) {
	r.packet = append(r.packet[:0], packet...)
	r.Parse(r.packet)
}

// urgent reports whether a packet is answered before the DISCOVERs: a REQUEST
// ends an exchange that has already cost an OFFER, and the other messages of
// clients that have an address are rare.
func (r *request) urgent() bool {
	return r.Type != dhcpv4.MessageTypeNone && r.Type != dhcpv4.MessageTypeDiscover
}

// queue has the waiting requests: those of known machines, and those of strangers. A
// flood of strangers leaves the known machines their room and three answers of four.
type queue struct {
	mu               sync.Mutex
	ready            sync.Cond // something is queued, or the queue is closed
	known, strangers lane
	turn             int
	closed           bool
}

// Of four requests at least one is taken from the strangers.
const strangersShare = 4

// open empties the queue and sets the length of each FIFO.
func (q *queue) open(length int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready.L, q.closed = &q.mu, false
	q.known, q.strangers = newLane(length), newLane(length)
}

// close lets take return nil once the queue is empty.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}

func (q *queue) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known.depth() + q.strangers.depth()
}

// push queues r, and returns the request that had to make room; nil for none. strangers
// is how many requests of strangers wait.
func (q *queue) push(r *request) (oldest *request, strangers int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready.Signal()
	l := &q.strangers
	if r.known {
		l = &q.known
	}
	oldest = l.push(r)
	return oldest, q.strangers.depth()
}

// take waits for a request and returns the one whose turn it is; nil when the
// queue is closed and empty.
func (q *queue) take() *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.known.depth()+q.strangers.depth() == 0 {
		if q.closed {
			return nil
		}
		q.ready.Wait()
	}
	first, second := &q.known, &q.strangers
	if q.turn++; q.turn%strangersShare == 0 {
		first, second = second, first
	}
	if first.depth() == 0 {
		first = second
	}
	return first.take()
}

// lane has requests in two FIFOs of equal length: urgent ones, and the rest. A
// full FIFO drops its oldest request, whose client will repeat it soonest. Neither FIFO
// starves the other: in a flood of DISCOVERs begun exchanges still end, and in a flood
// of REQUESTs every eighth answer is from the other FIFO.
type lane struct {
	urgent, rest fifo
	turn         int
}

// Of eight requests at least one is taken from the rest.
const restShare = 8

func newLane(length int) lane {
	return lane{urgent: fifo{ring: make([]*request, length)}, rest: fifo{ring: make([]*request, length)}}
}

func (l *lane) depth() int { return l.urgent.n + l.rest.n }

func (l *lane) push(r *request) (oldest *request) {
	if r.urgent() {
		return l.urgent.push(r)
	}
	return l.rest.push(r)
}

// take returns the request whose turn it is. There must be one.
func (l *lane) take() *request {
	first, second := &l.urgent, &l.rest
	if l.turn++; l.turn%restShare == 0 {
		first, second = second, first
	}
	if first.n == 0 {
		first = second
	}
	return first.take()
}

// fifo is a ring of requests, the oldest at head.
type fifo struct {
	ring    []*request
	head, n int
}

// push adds r, and returns the request that had to make room; nil for none.
func (f *fifo) push(r *request) (oldest *request) {
	if f.n == len(f.ring) {
		oldest = f.take()
	}
	f.ring[(f.head+f.n)%len(f.ring)] = r
	f.n++
	return oldest
}

// take removes the oldest request. There must be one.
func (f *fifo) take() *request {
	r := f.ring[f.head]
	f.ring[f.head] = nil
	f.head = (f.head + 1) % len(f.ring)
	f.n--
	return r
}
