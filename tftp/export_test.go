package tftp

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
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
	t, agreed, err := negotiate(r.options, 1e6, options{block: payload, window: maxWindow})
	return strings.ReplaceAll(strings.TrimSuffix(string(oack(agreed)[2:]), "\x00"), "\x00", " "),
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
	for _, w := range s.workers {
		w.uncut = true
	}
}

// Inside has sockets opened by calls of run: in a network namespace.
func (s *Server) Inside(run func(func() error) error) { s.inside = run }

// Running returns the number of transfers under way.
func (s *Server) Running() int {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	return len(s.limits.all.tickets)
}

// Packet is a packet on the network of a test.
type Packet struct {
	From, To netip.AddrPort
	Data     []byte
}

// UseNetwork connects the server to a network of a test. The server passes the
// packets that it sends to out. The listener has the address addr; the transfers have
// the same with other ports, unless the server has a single one. deliver passes a packet
// to the server; one to a closed port is lost.
func (s *Server) UseNetwork(mtu int, out func(Packet), addr netip.AddrPort) (deliver func(Packet)) {
	n := &fakeNetwork{
		server: s, addr: addr, mtu: mtu, out: out, in: make(chan Packet, 10000), ready: make(chan int32, 10000),
		stopped: make(chan struct{}), channels: map[int32]*fakeChannel{},
	}
	s.use(n, n)
	return n.deliver
}

// fakeNetwork is the listener of a server, and its only poller.
type fakeNetwork struct {
	server *Server
	addr   netip.AddrPort
	mtu    int
	out    func(Packet)
	in     chan Packet // for the listener
	ready  chan int32  // a channel for each packet

	close   sync.Once
	stopped chan struct{}

	mu       sync.Mutex
	last     int32
	channels map[int32]*fakeChannel
	refused  int   // how many packets are refused from now on
	refusal  error // with this error
	failed   int   // how many reads of the listener fail from now on
	failure  error // with this error
}

// FailReads makes the next reads of the listener fail.
func (s *Server) FailReads(times int, err error) {
	n := s.listener.(*fakeNetwork)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed, n.failure = times, err
}

// fails counts a read of the listener, and returns the error for it.
func (n *fakeNetwork) fails() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed == 0 {
		return nil
	}
	n.failed--
	return n.failure
}

// RefuseSends makes the network of a test refuse the next packets of the server.
func (s *Server) RefuseSends(packets int, err error) {
	n := s.listener.(*fakeNetwork)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused, n.refusal = packets, err
}

// refuses counts a packet that is to be sent, and returns the error for it.
func (n *fakeNetwork) refuses() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused == 0 {
		return nil
	}
	n.refused--
	return n.refusal
}

func (n *fakeNetwork) deliver(p Packet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, c := range n.channels {
		if c.local == p.To && c.client == p.From {
			c.packets = append(c.packets, p.Data)
			n.ready <- id
			return
		}
	}
	if p.To == n.addr {
		n.in <- p
	}
}

func (n *fakeNetwork) ReadBatch(in []ipv4.Message, _ int) (int, error) {
	if err := n.fails(); err != nil {
		return 0, err
	}
	select {
	case <-n.stopped:
		return 0, net.ErrClosed
	case p := <-n.in:
		in[0].N, in[0].Addr = copy(in[0].Buffers[0], p.Data), net.UDPAddrFromAddrPort(p.From)
		return 1, nil
	}
}

func (n *fakeNetwork) origin(*ipv4.Message) origin { return origin{addr: n.addr.Addr()} }
func (n *fakeNetwork) lost(*ipv4.Message) uint32   { return 0 }
func (n *fakeNetwork) payload(origin) int          { return n.mtu - headers4 }
func (n *fakeNetwork) LocalAddr() net.Addr         { return net.UDPAddrFromAddrPort(n.addr) }
func (n *fakeNetwork) Close() error                { n.close.Do(func() { close(n.stopped) }); return nil }

func (n *fakeNetwork) open(o origin, client netip.AddrPort) (channel, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	c := &fakeChannel{network: n, number: n.last, client: client, local: netip.AddrPortFrom(o.addr, uint16(40000+n.last))}
	if n.server.SinglePort {
		c.local = n.addr
	}
	n.channels[c.number] = c
	return c, nil
}

func (n *fakeNetwork) wait(ready []int32) (int, error) {
	select {
	case <-n.stopped:
		return 0, net.ErrClosed
	case ready[0] = <-n.ready:
		return 1, nil
	}
}

type fakeChannel struct {
	network       *fakeNetwork
	number        int32
	local, client netip.AddrPort
	packets       [][]byte
}

func (c *fakeChannel) id() int32 { return c.number }

func (c *fakeChannel) receive(b []byte) (int, netip.AddrPort, error) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if len(c.packets) == 0 {
		return 0, netip.AddrPort{}, unix.EAGAIN
	}
	n := copy(b, c.packets[0])
	c.packets = c.packets[1:]
	return n, c.client, nil
}

func (c *fakeChannel) leave() {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.channels, c.number)
}

func (c *fakeChannel) send(b []byte, size int) error {
	if len(b) > size {
		return unix.EIO // no network card can cut it
	}
	if err := c.network.refuses(); err != nil {
		return err
	}
	c.network.out(Packet{c.local, c.client, bytes.Clone(b)})
	return nil
}

func (c *fakeChannel) Close() error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.channels, c.number)
	return nil
}

// ReadCached reads what the kernel has of a file in memory.
func ReadCached(f File, b []byte, offset int64) bool { return readCached(descriptor(f), b, offset) }

// OpenBelow opens a file below dir.
func OpenBelow(dir, name string) (File, error) { return openBelow(dir, name) }
