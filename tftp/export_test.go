package tftp

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Clean is clean.
func Clean(name string) (string, error) { return clean(name) }

// Agree is parseRequest, then agree for a file of a million bytes: it returns
// the options as the OACK has them, and what is in force.
func Agree(packet string, room int) (acked, inForce string, err error) {
	r, err := parseRequest([]byte(packet))
	if err != nil {
		return "", "", err
	}
	t, options, err := agree(r.options, 1e6, room)
	return strings.ReplaceAll(strings.TrimSuffix(string(oack(options)[2:]), "\x00"), "\x00", " "),
		fmt.Sprintf("%d x %d, %v", t.window, t.block, t.timeout), err
}

// Progress is progress, that says in words what to send.
type Progress struct{ progress }

// NewProgress begins at time 0.
func NewProgress(window int, size int64, withOack bool, timeout time.Duration) *Progress {
	p := &Progress{newProgress(terms{512, window, timeout}, size, withOack)}
	p.Send(0)
	return p
}

// Send sends what is to do.
func (p *Progress) Send(at time.Duration) string {
	from, to := p.todo()
	p.wasSent(time.Time{}.Add(at))
	if to == 0 {
		return "options"
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// Got takes an ACK.
func (p *Progress) Got(block uint16, at time.Duration) string {
	switch {
	case p.got(block, time.Time{}.Add(at)):
		return p.Send(at)
	case p.done():
		return "done"
	}
	return ""
}

// Late looks at the clock.
func (p *Progress) Late(at time.Duration) string {
	switch send, giveUp := p.late(time.Time{}.Add(at)); {
	case giveUp:
		return "gives up"
	case send:
		return p.Send(at)
	}
	return ""
}

// Uncut makes the server cut windows into packets itself, as if the kernel did
// not.
func (s *Server) Uncut() {
	for _, p := range s.all() {
		p.socket.(*udpSocket).uncut = true
	}
}

// Packet is one on a network that a test makes.
type Packet struct {
	From, To netip.AddrPort
	Data     []byte
}

// UseNetwork puts the server on a network: out takes what it sends. The first
// of addrs is the listener's, the others are for transfers. It returns what
// delivers a packet to the server.
func (s *Server) UseNetwork(mtu int, out func(Packet), addrs ...netip.AddrPort) (deliver func(Packet)) {
	socks := make([]socket, len(addrs))
	for i, a := range addrs {
		socks[i] = &fakeSocket{local: a, mtu: mtu, in: make(chan Packet, 1000), out: out, stopped: make(chan struct{})}
	}
	s.use(socks[0], socks[1:]...)
	return func(p Packet) {
		if i := slices.Index(addrs, p.To); i >= 0 {
			socks[i].(*fakeSocket).in <- p
		}
	}
}

type fakeSocket struct {
	local   netip.AddrPort
	mtu     int
	in      chan Packet
	out     func(Packet)
	stopped chan struct{}
}

func (f *fakeSocket) receive(in []message, wait time.Duration, _ bool) (int, error) {
	var late <-chan time.Time
	if wait > 0 {
		late = time.After(wait)
	}
	select {
	case <-f.stopped:
		return 0, net.ErrClosed
	case <-late:
		return 0, nil
	case p := <-f.in:
		in[0] = message{data: bytes.Clone(p.Data), peer: p.From, at: place{f.local.Addr(), 1}}
		return 1, nil
	}
}

func (f *fakeSocket) send(out []message) {
	for _, m := range out {
		each := m.each
		if each == 0 {
			each = len(m.data)
		}
		for data := range slices.Chunk(m.data, each) {
			f.out(Packet{f.local, m.peer, bytes.Clone(data)})
		}
	}
}

func (f *fakeSocket) room(place) int { return f.mtu - headers4 }
func (f *fakeSocket) addr() net.Addr { return net.UDPAddrFromAddrPort(f.local) }
func (f *fakeSocket) stop()          { close(f.stopped) }
func (f *fakeSocket) close()         {}
