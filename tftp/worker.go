package tftp

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tick        = 50 * time.Millisecond // how often transfers are checked for late answers
	batchSize   = 64                    // packets, or sockets, for each call to the kernel
	requestSize = 2048                  // a request has at most 512 bytes: RFC 2347
	controlSize = 64                    // a control message of IPv6 takes 40 bytes
	maxMessage  = 65000                 // bytes that the kernel takes at once, headers included
)

// worker serves some of the transfers. Each transfer has a socket of its own, at a port
// that the kernel chooses at random (RFC 1350, the transfer identifier): a host that has
// not received the first packet cannot acknowledge anything. One call to the kernel finds
// the sockets with packets.
//
// Files are opened and read by goroutines of their own, never under mu, unless the kernel
// holds the content in memory: a slow disk delays one transfer, not the others of the
// worker.
type worker struct {
	server *Server
	poller poller

	mu       sync.Mutex
	sessions map[netip.AddrPort]*session // by client; the newest one of each
	sockets  map[int32]*session          // by channel
	uncut    bool                        // the kernel does not cut messages into packets
	ticker   *time.Timer                 // runs while there are sessions
	buffer   []byte                      // a message to be sent
	received []byte                      // a packet
}

// poller opens the sockets of transfers, and waits for packets on them. A channel's id is
// not used again before the channel is closed.
type poller interface {
	// open opens a socket that sends to a client and receives from it alone.
	open(o origin, client netip.AddrPort) (channel, error)
	// wait waits for packets. It returns how many of ready it filled with the ids of
	// channels that have some. After Close the error is net.ErrClosed.
	wait(ready []int32) (int, error)
	Close() error
}

// channel is the socket of one transfer. The error of receive and send is ECONNREFUSED if
// the client's host has answered that the port is closed (ICMP).
type channel interface {
	id() int32
	// receive reads a packet; the error is EAGAIN if there is none. from is its sender
	// where that may be another host than the client: at the port of the listener. It is
	// not valid elsewhere.
	receive(b []byte) (n int, from netip.AddrPort, err error)
	// send sends b in packets of at most size bytes.
	send(b []byte, size int) error
	// leave makes the client's further packets go to the listener, if that has the same
	// port. Packets that are here already stay.
	leave()
	Close() error
}

func newWorker(s *Server, p poller) *worker {
	return &worker{
		server: s, poller: p, sessions: map[netip.AddrPort]*session{}, sockets: map[int32]*session{},
		buffer: make([]byte, 0, maxPacket), received: make([]byte, requestSize),
	}
}

// yieldAfter is the time after which a worker yields to Go's scheduler. The scheduler
// counts all rounds as one time slice. After 10 ms its monitor would interrupt the thread
// every 20 µs, which costs a tenth of the throughput.
const yieldAfter = 8 * time.Millisecond

// run answers packets until the poller is closed.
func (w *worker) run() error {
	ready := make([]int32, batchSize)
	for yielded := time.Now(); ; {
		n, err := w.poller.wait(ready)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		now := time.Now()
		w.round(ready[:n], now)
		if now.Sub(yielded) > yieldAfter {
			runtime.Gosched()
			yielded = now
		}
	}
}

// round answers a packet of each socket that has some.
func (w *worker) round(ready []int32, now time.Time) {
	defer w.server.recover(new(error))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ready {
		s := w.sockets[id]
		if s == nil {
			continue // its end is newer than the poller's answer
		}
		n, from, err := s.channel.receive(w.received)
		switch {
		case err == nil && !w.restart(s, w.received[:n], from, now):
			w.packet(s, w.received[:n], now)
		case errors.Is(err, unix.ECONNREFUSED):
			w.refused(s, now)
		}
	}
}

// restart handles a packet that came to the socket of a session, but is not for the
// session: a request, as it does if there is only one port, or a packet of another host.
// It reports whether there was one. The request is one of the session's client, or of a
// client that sent it before the kernel had connected the socket.
func (w *worker) restart(s *session, b []byte, from netip.AddrPort, now time.Time) bool {
	client := s.client
	if from.IsValid() {
		client = netip.AddrPortFrom(from.Addr().WithZone(s.client.Addr().Zone()), from.Port())
	}
	if isRequest(b) {
		go w.server.request(bytes.Clone(b), client, s.origin, now) // it takes w.mu
		return true
	}
	return client != s.client
}

// packet handles a packet of a session's client.
func (w *worker) packet(s *session, b []byte, now time.Time) {
	answered := s.answered()
	action, err := s.packet(b, now)
	if !answered && s.answered() {
		w.proved(s, now)
	}
	w.do(s, action, err, now)
}

// refused ends a session whose client's host has answered that the port is closed. The
// last ACK of a client that has proved itself may still be on its way, so its session ends
// at the next timeout, or with a single port, where an ACK proves little, soon.
func (w *worker) refused(s *session, now time.Time) {
	s.refusals++
	if !s.answered() || w.server.SinglePort && s.refusals >= maxRefusals {
		w.finish(s, errUnreachable, now)
	}
}

// proved records that the client of a session receives its packets. An earlier transfer
// to the same port was left.
func (w *worker) proved(s *session, now time.Time) {
	w.server.limits.reached(&s.ticket, proved)
	if old := s.earlier; old != nil {
		s.earlier = nil
		w.finish(old, errRestarted, now)
	}
}

// tick sends unanswered blocks again, and ends transfers whose clients do not answer.
func (w *worker) tick() {
	defer w.server.recover(new(error))
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, s := range w.sockets {
		w.lags(s, now)
		action, err := s.tick(now)
		w.do(s, action, err, now)
	}
	if len(w.sockets)+len(w.sessions) > 0 {
		w.ticker.Reset(tick)
	}
}

// do performs the action of a transfer. If err is not nil, the transfer has failed.
func (w *worker) do(s *session, a action, err error, now time.Time) {
	switch a {
	case send:
		w.push(s, now)
	case finish:
		w.finish(s, err, now)
	}
}

// push sends the window of a session, at once or when it has been read.
func (w *worker) push(s *session, now time.Time) {
	if !s.answered() && !s.credit.allows(s.firstSize()) {
		s.wasHeld(now)
		w.server.drop(Unproved, 1)
		if !s.held && s.oack == nil {
			s.held = true
			w.server.explainHeld(&s.transfer)
		}
		return
	}
	defer w.read(s)
	if s.stalled = !s.ready(); s.stalled {
		if s.waits.IsZero() {
			s.waits = now
		}
		return
	}
	s.waits = time.Time{}
	if !s.answered() {
		s.credit.spend(s.firstSize())
	}
	from, to := s.todo()
	size := s.block + headerSize
	if to == 0 {
		size = len(s.oack)
	}
	for from <= to {
		last := to
		if w.uncut || s.uncut {
			last = from
		}
		last = min(last, from+max(1, int64(maxMessage/size))-1)
		w.buffer = w.buffer[:0]
		for n := from; n <= last; n++ {
			w.buffer = s.appendBlock(w.buffer, n)
		}
		err := s.channel.send(w.buffer, size)
		switch {
		case errors.Is(err, unix.ECONNREFUSED):
			w.refused(s, now)
			if s.ended {
				return
			}
		case err != nil && last > from && cannotCut(err):
			w.uncut = true
			continue
		case last > from && errors.Is(err, unix.EMSGSIZE): // the path takes less than the interface
			s.uncut = true
			continue
		case err != nil:
			w.unsent(s, err)
		}
		from = last + 1 // a packet that the kernel refuses is lost, and sent again by tick
	}
	if s.again {
		s.Resent++
	}
	s.wasSent(now)
}

// cannotCut reports whether the error means that the kernel or the network card does not
// cut messages: kernels before Linux 4.18, and some cards. The worker then does.
func cannotCut(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EOPNOTSUPP)
}

// displace ends a session whose place another one needs.
func (w *worker) displace(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !s.ended {
		w.finish(s, errDisplaced, time.Now())
	}
}

// abort ends all sessions.
func (w *worker) abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sockets {
		w.finish(s, errStopped, time.Now())
	}
	for _, s := range w.sessions {
		w.finish(s, errStopped, time.Now())
	}
}
