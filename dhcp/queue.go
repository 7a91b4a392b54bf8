package dhcp

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

// Packets on the wire are at most as long as the MTU. What fills this buffer
// was cut off, and is dropped.
const bufferSize = 4096

// request is a packet that waits for a worker.
type request struct {
	buf      []byte // bufferSize bytes
	n        int    // how many of them are the packet
	received time.Time
	from     netip.Addr // the sender's; unspecified before it has one
	glance
}

// bytes is the packet.
func (r *request) bytes() []byte { return r.buf[:r.n] }

// exchange is that of a packet which is dropped unread.
func (r *request) exchange(d Decision) Exchange {
	return Exchange{Time: r.received, MAC: r.mac, Type: typeName(r.kind), Decision: d}
}

// glance is what the order of answers depends on. It is had without parsing.
type glance struct {
	mac     pools.MAC          // chaddr, whatever kind of address that is; zero for what is too short
	relayed bool               // giaddr is set
	kind    dhcpv4.MessageType // none for what is no DHCP message
}

// Offsets into a packet (RFC 2131, section 2).
const (
	giaddrAt  = 24
	chaddrAt  = 28
	optionsAt = 240 // behind the magic cookie
)

// look takes a glance at a packet. It reads no more than the option codes, up
// to the message type; a broken packet is left for the parser to refuse.
func look(b []byte) (g glance) {
	if len(b) < optionsAt {
		return g
	}
	copy(g.mac[:], b[chaddrAt:])
	g.relayed = [4]byte(b[giaddrAt:]) != [4]byte{}
	for o := b[optionsAt:]; len(o) >= 3; {
		switch o[0] {
		case optPad:
			o = o[1:]
		case optEnd:
			return g
		case optMessageType:
			g.kind = dhcpv4.MessageType(o[2])
			return g
		default:
			o = o[min(2+int(o[1]), len(o)):]
		}
	}
	return g
}

// urgent tells whether a packet is answered before the DISCOVERs: a REQUEST
// ends an exchange that has already cost an OFFER, and what else a client
// sends once it has an address is rare.
func (g glance) urgent() bool {
	return g.kind != dhcpv4.MessageTypeNone && g.kind != dhcpv4.MessageTypeDiscover
}

// queue holds the requests that wait, in two lines of equal length. A line that
// is full drops its oldest: that client is the nearest to asking again. Neither
// line can crowd out the other: under a flood of DISCOVERs the exchanges that
// were begun still end, and under one of REQUESTs every eighth answer is to the
// rest.
//
// One goroutine uses it at a time, but depth is for all to read.
type queue struct {
	urgent, rest line
	turn         int
	depth        *atomic.Int64
}

// Of eight requests at least one is taken from the rest.
const urgentShare = 8

func newQueue(length int, depth *atomic.Int64) *queue {
	return &queue{urgent: line{ring: make([]*request, length)}, rest: line{ring: make([]*request, length)}, depth: depth}
}

// push puts r into its line, and returns the request that had to make room.
func (q *queue) push(r *request) (dropped *request) {
	l := &q.rest
	if r.urgent() {
		l = &q.urgent
	}
	if dropped = l.push(r); dropped == nil {
		q.depth.Add(1)
	}
	return dropped
}

// take returns the request whose turn it is, nil when none waits.
func (q *queue) take() *request {
	first, second := &q.urgent, &q.rest
	if q.turn++; q.turn%urgentShare == 0 {
		first, second = second, first
	}
	r := first.take()
	if r == nil {
		r = second.take()
	}
	if r != nil {
		q.depth.Add(-1)
	}
	return r
}

func (q *queue) empty() bool { return q.urgent.n == 0 && q.rest.n == 0 }

// line is a ring of requests, the oldest at head.
type line struct {
	ring    []*request
	head, n int
}

func (l *line) push(r *request) (dropped *request) {
	if l.n == len(l.ring) {
		dropped = l.take()
	}
	l.ring[(l.head+l.n)%len(l.ring)] = r
	l.n++
	return dropped
}

func (l *line) take() *request {
	if l.n == 0 {
		return nil
	}
	r := l.ring[l.head]
	l.ring[l.head] = nil
	l.head = (l.head + 1) % len(l.ring)
	l.n--
	return r
}
