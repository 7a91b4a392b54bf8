package tftp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// session is a transfer with its client's address, its socket and its file.
type session struct {
	transfer
	ticket
	client  netip.AddrPort
	origin  origin
	channel channel  // nil before the socket is open
	earlier *session // an answered one of the same client and port, until this one is answered

	source  io.ReaderAt    // the file, in the mode of the request
	fd      int            // of the file, if the source is as it is on disk; else -1
	disk    sync.WaitGroup // what opens or reads the file
	reading bool
	ended   bool
	waits   time.Time // since when the client waits for the content of the file; zero: it does not
	slow    bool      // that was reported
	held    bool      // its first packet waits for more requests, which was reported
	uncut   bool      // each block goes alone: the path takes less than the interface
}

// begin makes a session for a request, unless the request is a duplicate.
func (w *worker) begin(packet []byte, client netip.AddrPort, o origin, r request, now time.Time) {
	if w.repeated(packet, client, now) {
		return
	}
	s := &session{client: client, origin: o, transfer: transfer{
		Transfer: Transfer{File: r.file, Client: client.Addr().WithZone("")},
		request:  string(packet), begun: now, asked: now, expires: now.Add(cmp.Or(w.server.MaxTime, 15*time.Minute)),
	}}
	s.ticket = ticket{
		session: s, client: s.Client,
		known:   w.server.Known == nil || w.server.Known(s.Client),
		booting: w.server.Booting == nil || w.server.Booting(s.Client),
	}
	s.credit.add(len(packet))
	displaced, trusted, err := w.server.limits.acquire(&s.ticket)
	if err != nil { // firmware that gets no answer asks again, while an ERROR would end its boot
		s.end(err, now)
		go w.server.report(&s.transfer, s.known)
		return
	}
	if displaced != nil {
		w.server.workerFor(displaced.client).displace(displaced)
	}
	s.credit.trusted, s.credit.advance = trusted, trusted
	w.add(s, now)
	s.disk.Go(func() { w.open(s, r) })
}

// repeated answers a request that came again because the answer was lost.
func (w *worker) repeated(packet []byte, client netip.AddrPort, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[client]
	if s == nil || s.request != string(packet) || s.answered() {
		return false
	}
	s.repeated(now)
	if s.opened {
		w.push(s, now)
	}
	return true
}

// add adds a session. An answered one of the same client goes on until the new one is
// answered, too: anyone can send a request in the client's name. There is no telling them
// apart if both have the same port.
func (w *worker) add(s *session, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.sessions[s.client]; old != nil {
		if old.answered() && !w.server.SinglePort {
			s.earlier = old
		} else {
			s.earlier = old.earlier
			w.finish(old, errRestarted, now)
		}
	}
	if len(w.sockets)+len(w.sessions) == 0 {
		if w.ticker == nil {
			w.ticker = time.AfterFunc(tick, w.tick)
		} else {
			w.ticker.Reset(tick)
		}
	}
	w.sessions[s.client] = s
}

// open opens the socket and the file of a session, and sends the first packet, or an
// ERROR packet.
func (w *worker) open(s *session, r request) {
	if !w.connect(s) {
		return
	}
	var f File
	var text *textFile
	err := error(errNotBooting)
	if s.booting || !w.server.SinglePort {
		f, text, err = w.server.open(&r, s.Client)
	}
	most := w.server.most(s)
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.ended {
		if f != nil {
			f.Close()
		}
		return
	}
	s.Opened, s.File, s.source, s.fd = f, r.file, f, descriptor(f)
	var size int64
	if err == nil {
		size = f.Size()
		if text != nil {
			s.source, s.fd, size = text, -1, text.Size()
		}
		err = s.open(r, size, most)
	}
	if err != nil {
		w.finish(s, err, now)
		return
	}
	w.push(s, now)
	w.server.limits.reached(&s.ticket, offered)
}

// connect opens the socket of a session. It reports whether the session goes on.
func (w *worker) connect(s *session) bool {
	c, err := w.poller.open(s.origin, s.client)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.finish(s, fmt.Errorf("socket for the answers: %w", err), time.Now())
	case s.ended:
		c.Close()
	default:
		s.channel = c
		w.sockets[c.id()] = s
	}
	return !s.ended
}

// read reads the next piece of a session's file, unless it is being read. What the kernel
// holds in memory is read at once: on one processor, a goroutine for each piece took a
// tenth of the throughput of many clients.
func (w *worker) read(s *session) {
	if s.ended || s.reading {
		return
	}
	room, start := s.missing()
	if len(room) == 0 {
		return
	}
	if readCached(s.fd, room, start) {
		w.loaded(s, start, time.Now())
		return
	}
	s.reading = true
	s.disk.Go(func() {
		err := w.server.read(s.source, room, start)
		now := time.Now()
		w.mu.Lock()
		defer w.mu.Unlock()
		s.reading = false
		switch {
		case s.ended:
		case err != nil:
			w.finish(s, err, now)
		default:
			w.loaded(s, start, now)
		}
	})
}

// loaded goes on with a session whose file has been read from start.
func (w *worker) loaded(s *session, start int64, now time.Time) {
	s.loaded(start)
	if s.stalled {
		w.push(s, now)
	}
	w.read(s)
}

// sendError sends an ERROR packet, as far as the client may get one.
func (w *worker) sendError(s *session, r *refusal) {
	most := maxPacket
	if !s.answered() {
		most = s.credit.bytes
	}
	b := r.packet(most)
	if s.channel == nil || !s.answered() && len(b) > most {
		return
	}
	_ = s.channel.send(b, len(b)) // a client without it asks again
}

// finish ends a session.
func (w *worker) finish(s *session, err error, now time.Time) {
	if s.ended {
		return
	}
	s.ended = true
	if r, ok := errors.AsType[*refusal](err); ok {
		w.sendError(s, r)
	}
	if s.channel != nil {
		w.drain(s, now)
		delete(w.sockets, s.channel.id())
		s.channel.Close()
	}
	if w.sessions[s.client] == s {
		delete(w.sessions, s.client)
		if s.earlier != nil && !s.earlier.ended {
			w.sessions[s.client] = s.earlier
		}
	}
	s.end(err, now)
	go w.server.done(s)
}

// drain reads the packets that are left on the socket of an ended session. With a single
// port the client's next request may be among them.
func (w *worker) drain(s *session, now time.Time) {
	if !w.server.SinglePort {
		return
	}
	s.channel.leave()
	for range batchSize {
		n, from, err := s.channel.receive(w.received)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case err == nil:
			w.restart(s, w.received[:n], from, now)
		}
	}
}
