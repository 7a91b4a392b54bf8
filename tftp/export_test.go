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

// Negotiate calls parseRequest and then negotiate, for a file of a million
// bytes. It returns the options as the OACK lists them, and the options in
// force.
func Negotiate(packet string, payload int) (acked, inForce string, err error) {
	r, err := parseRequest([]byte(packet))
	if err != nil {
		return "", "", err
	}
	t, options, err := negotiate(r.options, 1e6, payload)
	return strings.ReplaceAll(strings.TrimSuffix(string(oack(options)[2:]), "\x00"), "\x00", " "),
		fmt.Sprintf("%d x %d, %v", t.window, t.block, t.timeout), err
}

// Progress is progress with methods that return the packets to send as text.
type Progress struct{ progress }

// NewProgress returns the progress of a transfer that begins at time 0.
func NewProgress(window int, size int64, withOack bool, timeout time.Duration) *Progress {
	p := &Progress{newProgress(options{512, window, timeout}, size, withOack)}
	p.Send(0)
	return p
}

// Send sends the window and returns it as text.
func (p *Progress) Send(at time.Duration) string {
	from, to := p.todo()
	p.wasSent(time.Time{}.Add(at))
	if to == 0 {
		return "options"
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// Ack handles an ACK that arrives at a time after the start, and returns the
// reaction.
func (p *Progress) Ack(block uint16, at time.Duration) string {
	switch p.ack(block, time.Time{}.Add(at)) {
	case send:
		return p.Send(at)
	case finish:
		return "done"
	}
	return ""
}

// Late handles the timeout at a time after the start, and returns the reaction.
func (p *Progress) Late(at time.Duration) string {
	switch p.late(time.Time{}.Add(at)) {
	case send:
		return p.Send(at)
	case finish:
		return "gives up"
	}
	return ""
}

// Uncut makes the server itself cut windows into packets, as on a kernel that
// does not.
func (s *Server) Uncut() {
	for _, p := range s.ports {
		p.uncut = true
	}
}

// Packet is a packet on the network of a test.
type Packet struct {
	From, To netip.AddrPort
	Data     []byte
}

// UseNetwork connects the server to a network of a test. The server passes the
// packets that it sends to out. The first of addrs is the listener's address,
// and the others are for transfers. deliver passes a packet to the server.
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
			return 0, unix.EIO // no network card can cut it
		}
		f.out(Packet{f.local, m.Addr.(*net.UDPAddr).AddrPort(), bytes.Clone(m.Buffers[0])})
	}
	return len(out), nil
}

func (f *fakeSocket) reply(*ipv4.Message) ([]byte, int) { return nil, f.mtu - headers4 }
func (f *fakeSocket) LocalAddr() net.Addr               { return net.UDPAddrFromAddrPort(f.local) }
func (f *fakeSocket) Close() error                      { close(f.stopped); return nil }
