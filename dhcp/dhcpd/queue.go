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
	from     netip.Addr     // of the sender; 0.0.0.0 before it has one
	replyTo  netip.AddrPort // for a request to the boot port: its sender; else zero
	received time.Time
	buffer   [dhcp.MaxRequest + 1]byte // a longer packet is cut off, and so found out
	size     int                       // of the packet in buffer, in bytes
}

func (r *request) packet() []byte { return r.buffer[:r.size] }

// urgent reports whether a packet is answered before the DISCOVERs: a REQUEST
// ends an exchange that has already cost an OFFER, and the other messages of
// clients that have an address are rare.
func (r *request) urgent() bool {
	return r.Type != dhcpv4.MessageTypeNone && r.Type != dhcpv4.MessageTypeDiscover
}

// queue has the waiting requests in two FIFOs of equal length: urgent ones, and the rest. A
// full FIFO drops its oldest request, whose client will repeat it soonest. Neither FIFO
// starves the other: in a flood of DISCOVERs begun exchanges still end, and in a flood
// of REQUESTs every eighth answer is from the other FIFO.
type queue struct {
	mu           sync.Mutex
	ready        sync.Cond // something is queued, or the queue is closed
	urgent, rest fifo
	turn         int
	closed       bool
}

// Of eight requests at least one is taken from the rest.
const urgentShare = 8

// open empties the queue and sets the length of the FIFOs.
func (q *queue) open(length int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready.L, q.closed = &q.mu, false
	q.urgent, q.rest = fifo{ring: make([]*request, length)}, fifo{ring: make([]*request, length)}
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
	return q.urgent.n + q.rest.n
}

// push queues r, and returns the request that had to make room; nil for none.
func (q *queue) push(r *request) (oldest *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready.Signal()
	if r.urgent() {
		return q.urgent.push(r)
	}
	return q.rest.push(r)
}

// take waits for a request and returns the one whose turn it is; nil when the
// queue is closed and empty.
func (q *queue) take() *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.urgent.n+q.rest.n == 0 {
		if q.closed {
			return nil
		}
		q.ready.Wait()
	}
	first, second := &q.urgent, &q.rest
	if q.turn++; q.turn%urgentShare == 0 {
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
