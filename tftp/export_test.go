package tftp

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// Clean is clean.
func Clean(name string) (string, error) { return clean(name) }

// Negotiate is parseRequest, then negotiate for a file of a million bytes: it
// returns the options as the OACK has them, and those in force.
func Negotiate(packet string, payload int) (acked, inForce string, err error) {
	r, err := parseRequest([]byte(packet))
	if err != nil {
		return "", "", err
	}
	t, options, err := negotiate(r.options, 1e6, payload)
	return strings.ReplaceAll(strings.TrimSuffix(string(oack(options)[2:]), "\x00"), "\x00", " "),
		fmt.Sprintf("%d x %d, %v", t.window, t.block, t.timeout), err
}

// Progress is progress with what to send as text.
type Progress struct{ progress }

// NewProgress begins at time 0.
func NewProgress(window int, size int64, withOack bool, timeout time.Duration) *Progress {
	p := &Progress{newProgress(options{512, window, timeout}, size, withOack)}
	p.Send(0)
	return p
}

// Send sends the window.
func (p *Progress) Send(at time.Duration) string {
	from, to := p.todo()
	p.wasSent(time.Time{}.Add(at))
	if to == 0 {
		return "options"
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// Ack takes an ACK.
func (p *Progress) Ack(block uint16, at time.Duration) string {
	switch p.ack(block, time.Time{}.Add(at)) {
	case send:
		return p.Send(at)
	case finish:
		return "done"
	}
	return ""
}

// Late takes the time.
func (p *Progress) Late(at time.Duration) string {
	switch p.late(time.Time{}.Add(at)) {
	case send:
		return p.Send(at)
	case finish:
		return "gives up"
	}
	return ""
}

// Uncut makes the server cut windows into packets itself, as if the kernel did
// not.
func (s *Server) Uncut() {
	for _, p := range s.ports {
		p.uncut = true
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
	s.use(socks...)
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

func (f *fakeSocket) ReadBatch(in []ipv4.Message, _ int) (int, error) {
	select {
	case <-f.stopped:
		return 0, net.ErrClosed
	case p := <-f.in:
		in[0].N, in[0].Addr = copy(in[0].Buffers[0], p.Data), net.UDPAddrFromAddrPort(p.From)
		return 1, nil
	}
}

func (f *fakeSocket) WriteBatch(out []ipv4.Message, _ int) (int, error) {
	for _, m := range out {
		if len(m.OOB) > 0 {
			return 0, unix.EIO // no network card to cut it
		}
		f.out(Packet{f.local, m.Addr.(*net.UDPAddr).AddrPort(), bytes.Clone(m.Buffers[0])})
	}
	return len(out), nil
}

func (f *fakeSocket) reply(*ipv4.Message) ([]byte, int) { return nil, f.mtu - headers4 }
func (f *fakeSocket) LocalAddr() net.Addr               { return net.UDPAddrFromAddrPort(f.local) }
func (f *fakeSocket) Close() error                      { close(f.stopped); return nil }
