package tftp

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	tick        = 50 * time.Millisecond // how often transfers are checked for late answers
	batchSize   = 64                    // packets for each call to the kernel
	requestSize = 2048                  // a request has at most 512 bytes: RFC 2347
	controlSize = 64                    // a control message of IPv6 takes 40 bytes
	maxMessage  = 65000                 // bytes that the kernel takes at once, headers included
	bufferSize  = 256 << 10
)

// port is a socket with its transfers. RFC 1350 gives each transfer a port of its own.
// Here several transfers share one, and the client's address and port identify a
// transfer, so that one system call gets the packets of many clients.
//
// Files are opened and read by goroutines of their own, never under mu: a slow
// disk delays one transfer, not the others of the port.
type port struct {
	server  *Server
	socket  socket
	listens bool // requests come here

	mu       sync.Mutex
	sessions map[netip.AddrPort]*session
	uncut    bool           // the kernel does not cut messages into packets
	ticker   *time.Timer    // runs while there are sessions
	out      []ipv4.Message // to be sent
	buffer   []byte         // what out holds
}

// session is a transfer with its client's address and its file.
type session struct {
	transfer
	client  netip.AddrPort
	addr    *net.UDPAddr // of the client
	control []byte       // has answers leave from the address that the client asked

	disk    sync.WaitGroup // what opens or reads the file
	reading bool
	ended   bool
}

func newPort(s *Server, sock socket, listens bool) *port {
	return &port{
		server: s, socket: sock, listens: listens, sessions: map[netip.AddrPort]*session{},
		buffer: make([]byte, 0, bufferSize), out: make([]ipv4.Message, 0, batchSize),
	}
}

// yieldAfter is the time after which a port yields to Go's scheduler. The scheduler
// counts all rounds as one time slice. After 10 ms its monitor would interrupt the thread
// every 20 µs, which costs a tenth of the throughput.
const yieldAfter = 8 * time.Millisecond

// run answers packets until the socket is closed.
func (p *port) run() error {
	in := make([]ipv4.Message, batchSize)
	for i := range in {
		in[i].Buffers, in[i].OOB = [][]byte{make([]byte, requestSize)}, make([]byte, controlSize)
	}
	for yielded, expected := time.Now(), 1; ; {
		n, err := p.socket.ReadBatch(in[:expected], unix.MSG_WAITFORONE)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err == nil:
			now := time.Now()
			expected = min(max(p.round(in[:n], now), 1), batchSize) // each more costs time
			if now.Sub(yielded) > yieldAfter {
				runtime.Gosched()
				yielded = now
			}
		// Go's runtime interrupts its threads by signals.
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENETDOWN):
			return err
		}
	}
}

// round answers a batch of packets, and returns the number of sessions.
func (p *port) round(in []ipv4.Message, now time.Time) int {
	defer p.server.recover(new(error))
	if p.listens {
		for i := range in {
			p.server.request(&in[i], now)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.flush()
	for i := range in {
		// A packet without a session came after its end, or is a duplicate.
		if s := p.sessions[addrPort(in[i].Addr)]; s != nil {
			action, err := s.packet(in[i].Buffers[0][:in[i].N], now)
			p.do(s, action, err, now)
		}
	}
	return len(p.sessions)
}

// addrPort is the address of a packet as the key of a session.
func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// tick sends unanswered blocks again, and ends transfers whose clients do not answer.
func (p *port) tick() {
	defer p.server.recover(new(error))
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.flush()
	now := time.Now()
	for _, s := range p.sessions {
		action, err := s.tick(now)
		p.do(s, action, err, now)
	}
	if len(p.sessions) > 0 {
		p.ticker.Reset(tick)
	}
}

// do performs the action of a transfer. If err is not nil, the transfer has failed.
func (p *port) do(s *session, a action, err error, now time.Time) {
	switch a {
	case send:
		p.push(s, now)
	case finish:
		p.finish(s, err, now)
	}
}

// begin makes a session for a request, unless the request is a duplicate.
func (p *port) begin(m *ipv4.Message, r request, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.flush()
	client, packet := addrPort(m.Addr), string(m.Buffers[0][:m.N])
	if old := p.sessions[client]; old != nil {
		if old.request == packet && !old.answered() {
			if old.opened { // our answer was lost
				p.push(old, now)
			}
			return
		}
		p.finish(old, errRestarted, now)
	}
	control, payload := p.socket.reply(m)
	s := &session{client: client, addr: m.Addr.(*net.UDPAddr), control: control, transfer: transfer{
		Transfer: Transfer{File: r.file, Client: client.Addr().WithZone("")},
		request:  packet, begun: now, expires: now.Add(cmp.Or(p.server.MaxTime, 15*time.Minute)),
	}}
	if err := p.server.limits.acquire(s.Client); err != nil {
		p.sendError(s, &refusal{codeOther, "server is busy, try again", err})
		s.end(err, now)
		go p.server.report(&s.transfer)
		return
	}
	p.sessions[client] = s
	if p.ticker == nil {
		p.ticker = time.AfterFunc(tick, p.tick)
	} else if len(p.sessions) == 1 {
		p.ticker.Reset(tick)
	}
	s.disk.Go(func() { p.open(s, r, payload-headerSize) })
}

// open opens the file of a session and sends its first packet, or an ERROR packet.
func (p *port) open(s *session, r request, payload int) {
	f, err := p.server.open(&r, s.Client)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.flush()
	if s.Opened = f; s.ended {
		return
	}
	s.File = r.file
	if err == nil {
		err = s.open(r, f.Size(), payload)
	}
	if err != nil {
		p.finish(s, err, now)
	} else {
		p.push(s, now)
	}
}

// read reads the next piece of a session's file, unless it is being read.
func (p *port) read(s *session) {
	room, start := s.missing()
	if s.reading || len(room) == 0 {
		return
	}
	s.reading = true
	s.disk.Go(func() {
		err := p.server.read(s.Opened, room, start)
		now := time.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		defer p.flush()
		s.reading = false
		switch {
		case s.ended:
		case err != nil:
			p.finish(s, err, now)
		default:
			s.loaded(start)
			if s.stalled {
				p.push(s, now)
			}
			p.read(s)
		}
	})
}

// push sends the window of a session, at once or when it has been read.
func (p *port) push(s *session, now time.Time) {
	defer p.read(s)
	if s.stalled = !s.ready(); s.stalled {
		return
	}
	together := int64(1) // blocks in one message, which the kernel cuts into packets
	if !p.uncut {
		together = max(1, int64(maxMessage/(s.block+headerSize)))
	}
	for from, to := s.todo(); from <= to; {
		n := min(together, to-from+1)
		p.reserve(max(int(n)*(s.block+headerSize), len(s.oack)))
		start, control := len(p.buffer), s.control
		if n > 1 {
			control = segmented(control, s.block+headerSize)
		}
		for ; n > 0; n, from = n-1, from+1 {
			p.buffer = s.appendBlock(p.buffer, from)
		}
		p.put(s, p.buffer[start:], control)
	}
	if s.again {
		s.Resent++
	}
	s.wasSent(now)
}

// reserve makes room for one more outgoing message of size bytes.
func (p *port) reserve(size int) {
	if len(p.buffer)+size > cap(p.buffer) || len(p.out) == cap(p.out) {
		p.flush()
	}
}

// put adds a message to the outgoing batch.
func (p *port) put(s *session, data, control []byte) {
	p.out = p.out[:len(p.out)+1]
	m := &p.out[len(p.out)-1]
	m.Buffers, m.Addr, m.OOB = append(m.Buffers[:0], data), s.addr, control
}

func (p *port) sendError(s *session, r *refusal) {
	p.reserve(0)
	p.put(s, r.packet(), s.control)
}

// finish ends a session.
func (p *port) finish(s *session, err error, now time.Time) {
	if r, ok := errors.AsType[*refusal](err); ok {
		p.sendError(s, r)
	}
	delete(p.sessions, s.client)
	s.ended = true
	s.end(err, now)
	go p.server.done(s)
}

// abort ends all sessions.
func (p *port) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.flush()
	for _, s := range p.sessions {
		p.finish(s, errStopped, time.Now())
	}
}

// flush sends the outgoing batch. Messages that the kernel refuses are lost, and sent
// again by tick. Kernels before Linux 4.18 and some network cards cannot segment
// messages; after such an error the port segments them itself.
func (p *port) flush() {
	for out := p.out; len(out) > 0; {
		n, err := p.socket.WriteBatch(out, 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			p.uncut = p.uncut || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EOPNOTSUPP)
			n = max(n, 1)
		}
		out = out[max(n, 0):] // of an error it is -1
	}
	p.out, p.buffer = p.out[:0], p.buffer[:0]
}
