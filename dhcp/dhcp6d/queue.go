package dhcp6d

import "github.com/insomniacslk/dhcp/dhcpv6"

const (
	queueLength = 2048 // of each queue

	// Of so many requests at least one is taken from the strangers, and of so many of a
	// lane at least one that is not urgent.
	strangersShare, restShare = 4, 8
)

// lane has the waiting requests of declared machines, or those of strangers. SOLICITs have a
// queue of their own: the other messages end an exchange that has already cost an answer, or
// are rare. In a flood of SOLICITs begun exchanges still end, and in one of REQUESTs every
// eighth answer is to a SOLICIT.
type lane struct{ urgent, rest chan *request }

func newLane() lane {
	return lane{urgent: make(chan *request, queueLength), rest: make(chan *request, queueLength)}
}

// of returns the queue for a message.
func (l lane) of(t dhcpv6.MessageType) chan *request {
	if t == dhcpv6.MessageTypeSolicit {
		return l.rest
	}
	return l.urgent
}

// order returns the queues in the order of turn n.
func (l lane) order(n int) (first, second chan *request) {
	if n%restShare == 0 {
		return l.rest, l.urgent
	}
	return l.urgent, l.rest
}

// order returns all queues in the order of turn n of a worker. A flood of strangers leaves
// the declared machines three answers of four.
func (s *Server) order(n int) (q [4]chan *request) {
	ofStrangers := n / strangersShare // turns of theirs so far
	q[0], q[1] = s.known.order(n - ofStrangers)
	q[2], q[3] = s.strangers.order(ofStrangers)
	if n%strangersShare == 0 {
		q[0], q[1], q[2], q[3] = q[2], q[3], q[0], q[1]
	}
	return q
}

// take waits for a request, and returns the first by the order of the queues. It returns
// nil when stop is closed and the queues are empty.
func take(q [4]chan *request, stop <-chan struct{}) *request {
	if r := ready(q); r != nil {
		return r
	}
	select {
	case r := <-q[0]:
		return r
	case r := <-q[1]:
		return r
	case r := <-q[2]:
		return r
	case r := <-q[3]:
		return r
	case <-stop:
		return ready(q)
	}
}

// ready returns the first request that waits, or nil.
func ready(q [4]chan *request) *request {
	for _, c := range q {
		select {
		case r := <-c:
			return r
		default:
		}
	}
	return nil
}
