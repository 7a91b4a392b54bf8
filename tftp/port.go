package tftp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	tick       = 50 * time.Millisecond // how often transfers are looked at for late answers
	bufferSize = maxWindowBytes
	// maxMessage is what the kernel takes for one message, headers included:
	// an IP packet, whether it is one or cut into several.
	maxMessage = 65000
	// many transfers make it worth a port's while to look for packets instead
	// of sleeping until they come.
	many = 8
)

// port is a socket with the transfers that go through it. RFC 1350 gives each
// transfer a port of its own; here some share one, told apart by the client's
// address and port, so that one call to the kernel gets the answers of many
// clients. Nothing is kept for a transfer but its numbers: what is lost is read
// again.
type port struct {
	server   *Server
	socket   socket
	requests bool // they come here; if not, there is nothing to receive without a transfer

	mu        sync.Mutex
	transfers map[netip.AddrPort]*transfer
	aborted   bool
	looked    time.Time
	buffer    []byte    // what out holds
	out       []message // to be sent

	begun chan struct{} // a transfer came to an idle port
	ended chan struct{} // no more will come
}

func newPort(s *Server, sock socket, requests bool) *port {
	return &port{
		server: s, socket: sock, requests: requests, transfers: map[netip.AddrPort]*transfer{},
		buffer: make([]byte, 0, bufferSize), begun: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// yieldAfter is how long a port runs without telling Go's scheduler. To the
// scheduler all rounds are one turn; after 10 ms of it, its monitor would
// interfere every 20 µs, which costs a tenth of the throughput.
const yieldAfter = 8 * time.Millisecond

// run answers packets until the socket is stopped.
func (p *port) run() error {
	in := make([]message, receiveBatch)
	for yielded := time.Now(); ; {
		wait, expected, busy := time.Duration(0), receiveBatch, p.busy()
		if busy > 0 {
			wait = tick
			if !p.requests {
				expected = min(busy, receiveBatch)
			}
		} else if !p.requests {
			select {
			case <-p.begun:
				continue
			case <-p.ended:
				return nil
			}
		}
		n, err := p.socket.receive(in[:expected], wait, busy >= many)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		now := time.Now()
		p.round(in[:n], now)
		if now.Sub(yielded) > yieldAfter {
			runtime.Gosched()
			yielded = now
		}
	}
}

func (p *port) stop() {
	close(p.ended)
	p.socket.stop()
}

// busy is how many transfers there are.
func (p *port) busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.transfers)
}

// round answers packets that came together, and what has not come.
func (p *port) round(in []message, now time.Time) {
	defer func() { _ = p.server.caught(recover()) }()
	if p.requests {
		for i := range in {
			p.server.request(&in[i], now)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range in {
		p.answer(&in[i], now)
	}
	if now.Sub(p.looked) >= tick {
		p.looked = now
		p.overdue(now)
	}
	p.flush()
}

// answer takes a packet of a transfer. Those of no transfer come after its end,
// or were doubled by the network.
func (p *port) answer(m *message, now time.Time) {
	t := p.transfers[m.peer]
	if t == nil || t.file == nil || len(m.data) < 4 {
		return
	}
	switch binary.BigEndian.Uint16(m.data) {
	case opAck:
		switch {
		case now.After(t.expires):
			p.finish(t, errTooSlow, now)
		case t.got(binary.BigEndian.Uint16(m.data[2:]), now):
			p.push(t, now)
		case t.done():
			p.finish(t, nil, now)
		}
	case opError:
		p.finish(t, parseError(m.data), now)
	}
}

// overdue sends again what was not answered, and gives up.
func (p *port) overdue(now time.Time) {
	for _, t := range p.transfers {
		if t.file == nil {
			continue
		}
		if now.After(t.expires) {
			p.finish(t, errTooSlow, now)
			continue
		}
		switch send, giveUp := t.late(now); {
		case send:
			p.push(t, now)
		case giveUp:
			p.finish(t, t.unanswered(), now)
		}
	}
}

// begin makes place for the transfer that a request asks for; nil when the
// request was seen before. Its error says why there is no place.
func (p *port) begin(m *message, r request, now time.Time) (*transfer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.flush()
	if old := p.transfers[m.peer]; old != nil {
		switch {
		case old.file == nil: // it is about to be answered
			return nil, nil
		case old.fresh() && old.request == string(m.data): // the answer was lost
			p.push(old, now)
			return nil, nil
		}
		p.finish(old, errAnew, now)
	}
	t := &transfer{
		Transfer: Transfer{File: r.file, Client: m.peer.Addr().Unmap().WithZone("")},
		peer:     m.peer, at: m.at, request: string(m.data), begun: now, expires: now.Add(p.server.maxTime()),
	}
	if err := p.server.limits.enter(t.Client); err != nil {
		p.tell(t, &refusal{codeOther, "server is busy, try again", err})
		return t, err
	}
	p.transfers[m.peer] = t
	select {
	case p.begun <- struct{}{}:
	default:
	}
	return t, nil
}

// start sends the first packet of a transfer whose file is open, or the reason
// why it is not.
func (p *port) start(t *transfer, r request, f File, err error) {
	now := time.Now()
	room := p.socket.room(t.at) - headerSize
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.flush()
	t.File = r.file
	if err == nil {
		t.page = p.server.page()
		err = t.accept(f, r, room)
	}
	if err == nil && p.aborted {
		err = errStopped
	}
	if err != nil {
		p.finish(t, err, now)
		return
	}
	p.push(t, now)
}

// push puts the window of a transfer into what is to be sent.
func (p *port) push(t *transfer, now time.Time) {
	if need := t.window * (t.block + headerSize); len(p.buffer)+max(need, len(t.oack)) > cap(p.buffer) || len(p.out) >= sendBatch {
		p.flush()
	}
	start := len(p.buffer)
	b, each, err := t.appendBlocks(p.buffer)
	if err != nil {
		p.finish(t, err, now)
		return
	}
	p.buffer = b
	chunk := len(b)
	if each > 0 {
		chunk = max(1, min(maxMessage/each, maxWindow)) * each
	}
	for data := range slices.Chunk(b[start:], chunk) {
		p.out = append(p.out, message{data: data, each: each, peer: t.peer, at: t.at})
	}
	if t.again {
		t.Resent++
	}
	t.wasSent(now)
}

// tell sends the client an ERROR packet.
func (p *port) tell(t *transfer, r *refusal) {
	p.out = append(p.out, message{data: r.packet(), peer: t.peer, at: t.at})
}

// finish ends a transfer and tells who wants to know.
func (p *port) finish(t *transfer, err error, now time.Time) {
	if r, ok := errors.AsType[*refusal](err); ok {
		p.tell(t, r)
	}
	delete(p.transfers, t.peer)
	t.end(err, now)
	go p.server.done(t)
}

// abort ends all transfers.
func (p *port) abort(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.flush()
	p.aborted = true
	for _, t := range p.transfers {
		if t.file != nil {
			p.finish(t, err, time.Now())
		}
	}
}

func (p *port) flush() {
	if len(p.out) > 0 {
		p.socket.send(p.out)
	}
	p.out, p.buffer = p.out[:0], p.buffer[:0]
}
