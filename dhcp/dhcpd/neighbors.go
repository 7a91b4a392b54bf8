package dhcpd

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/mdlayher/packet"

	"drover/pools"
)

const (
	// firstAsk is the pause after the first question; each further one is twice as
	// long. A host answers within a millisecond.
	firstAsk = 20 * time.Millisecond

	// confirmPatience is how long the sender of a packet has to answer.
	confirmPatience = time.Second

	// notePatience is how long a machine has until it uses the address that another
	// server gave it: it probes the address first (RFC 5227).
	notePatience = 15 * time.Second

	// confirmed is how long an answer counts.
	confirmed = 10 * time.Second

	maxQuestions = 1024 // under way at a time
	maxWaiting   = 256  // packets that wait for one answer
)

// neighbor is a host on the wire.
type neighbor struct {
	addr netip.Addr
	mac  pools.MAC
}

// neighbors finds out whether a host has an address. It asks only that host, by unicast
// ARP, and hears ARP that the host sends to others. No host behind a router can answer.
type neighbors struct {
	server *Server

	mu      sync.Mutex
	asked   map[neighbor]*question
	sure    map[neighbor]time.Time // those that have answered
	ended   bool
	running sync.WaitGroup // calls of again
}

// question is one that a host has not answered yet.
type question struct {
	then  []func(bool)
	pause time.Duration // until the next attempt
	left  time.Duration // after that
	timer *time.Timer
}

func newNeighbors(s *Server) *neighbors {
	return &neighbors{server: s, asked: map[neighbor]*question{}, sure: map[neighbor]time.Time{}}
}

// ask calls then once, possibly in another goroutine: with true when the host says that
// it has the address, and with false when its time is over. It returns false, and never
// calls then, when too many questions are under way.
func (ns *neighbors) ask(n neighbor, patience time.Duration, then func(bool)) bool {
	ns.mu.Lock()
	if t, ok := ns.sure[n]; ok && ns.server.now().Sub(t) < confirmed {
		ns.mu.Unlock()
		then(true)
		return true
	}
	defer ns.mu.Unlock()
	q := ns.asked[n]
	switch {
	case ns.ended, q == nil && len(ns.asked) >= maxQuestions, q != nil && len(q.then) >= maxWaiting:
		return false
	case q != nil:
		q.then = append(q.then, then)
		return true
	}
	q = &question{then: []func(bool){then}, pause: firstAsk, left: patience - firstAsk}
	ns.asked[n] = q
	q.timer = time.AfterFunc(q.pause, func() { ns.again(n, q) })
	ns.send(n)
	return true
}

// again repeats a question, or gives up.
func (ns *neighbors) again(n neighbor, q *question) {
	ns.mu.Lock()
	if ns.asked[n] != q {
		ns.mu.Unlock()
		return
	}
	if q.left > 0 {
		q.pause = min(2*q.pause, q.left)
		q.left -= q.pause
		q.timer.Reset(q.pause)
		ns.send(n)
		ns.mu.Unlock()
		return
	}
	delete(ns.asked, n)
	ns.running.Add(1)
	defer ns.running.Done()
	ns.mu.Unlock()
	q.answer(false)
}

func (q *question) answer(ok bool) {
	for _, then := range q.then {
		then(ok)
	}
}

// seen ends the question about a host that says that it has an address.
func (ns *neighbors) seen(n neighbor) {
	ns.mu.Lock()
	q := ns.asked[n]
	if q == nil {
		ns.mu.Unlock()
		return
	}
	delete(ns.asked, n)
	q.timer.Stop()
	if len(ns.sure) >= maxQuestions {
		clear(ns.sure)
	}
	ns.sure[n] = ns.server.now()
	ns.mu.Unlock()
	q.answer(true)
}

// stop ends all questions without an answer.
func (ns *neighbors) stop() {
	ns.mu.Lock()
	ns.ended = true
	left := ns.asked
	ns.asked = nil
	ns.mu.Unlock()
	for _, q := range left {
		q.timer.Stop()
		q.answer(false)
	}
	ns.running.Wait()
}

// send asks a host. An answer that is missing is asked for again. The caller holds the
// lock.
func (ns *neighbors) send(n neighbor) {
	s := ns.server
	f := arpRequest(s.mac(), s.sourceFor(n.addr), n.mac[:], n.addr)
	if _, err := s.arp.WriteTo(f, &packet.Addr{HardwareAddr: n.mac[:]}); err != nil {
		s.log().Debug("dhcp: ARP request", "address", n.addr, "error", err)
	}
}

// sourceFor returns the server's own address on the network of a; the zero Addr if it
// has none there.
func (s *Server) sourceFor(a netip.Addr) netip.Addr {
	for _, p := range s.wire {
		if p.Contains(a) {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// arpRequest is the frame that asks the host to for an address. sender is the asking
// host's own address, or the zero Addr for a probe.
func arpRequest(from net.HardwareAddr, sender netip.Addr, to net.HardwareAddr, a netip.Addr) []byte {
	f := arpProbe(from, a)
	copy(f, to)
	if sender.IsValid() {
		ip := sender.As4()
		copy(f[ethernetHeader+14:], ip[:])
	}
	return f
}
