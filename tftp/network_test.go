package tftp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/tftp"
)

// memory is a file in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// weather is the effect of a network on packets: it loses, duplicates and
// delays them, and thereby reorders them.
type weather struct {
	delay                time.Duration // of a packet
	loss, double, delay2 float64       // the shares that are lost, duplicated, and delayed twice as long
}

// network carries packets between a server and its clients.
type network struct {
	weather

	mu      sync.Mutex
	rand    *rand.Rand
	clients map[netip.AddrPort]func(tftp.Packet)
	server  func(tftp.Packet)
	data    int           // DATA packets that the server sent
	count   time.Duration // packets, in nanoseconds
}

// carry delivers a packet from either side to the other.
func (n *network) carry(p tftp.Packet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	deliver := n.clients[p.To]
	if deliver == nil {
		deliver = n.server
	} else if p.Data[1] == 3 {
		n.data++
	}
	copies := 1
	if n.rand.Float64() < n.loss {
		copies = 0
	} else if n.rand.Float64() < n.double {
		copies = 2
	}
	for range copies {
		wait := n.delay
		if n.rand.Float64() < n.delay2 {
			wait += n.delay
		}
		n.count++ // the order of two packets of the same nanosecond would be random
		time.AfterFunc(wait+n.count, func() { deliver(p) })
	}
}

// receiver is a client that follows RFC 7440: it acknowledges full windows, the
// last block, and the last block before a gap.
type receiver struct {
	addr, server  netip.AddrPort
	block, window int
	send          func(tftp.Packet)
	in            chan tftp.Packet

	got   bytes.Buffer
	have  int64 // blocks
	since int   // blocks since the last ACK
	last  []byte
	done  bool
	whole chan struct{} // closed after the last block
}

func (r *receiver) out(b []byte) {
	r.last = b
	r.send(tftp.Packet{From: r.addr, To: r.server, Data: b})
}

func (r *receiver) ack() {
	r.since = 0
	r.out(binary.BigEndian.AppendUint16([]byte{0, 4}, uint16(r.have)))
}

// fetch runs until it has the file. After 100 s without a packet it returns an
// error.
func (r *receiver) fetch(ctx context.Context, file string) error {
	r.out([]byte("\x00\x01" + file + "\x00octet\x00blksize\x00" + strconv.Itoa(r.block) + "\x00windowsize\x00" + strconv.Itoa(r.window) + "\x00"))
	for quiet := 0; quiet < 100; quiet++ {
		select {
		case <-ctx.Done(): // the server is done: nothing needs the remaining packets
			return nil
		case p := <-r.in:
			quiet = 0
			if p.Data[1] == 5 {
				return fmt.Errorf("server says %q", p.Data[4:])
			}
			r.take(p)
		case <-time.After(time.Second):
			if !r.done {
				r.out(r.last)
			}
		}
	}
	return fmt.Errorf("nothing more came after block %d", r.have)
}

func (r *receiver) take(p tftp.Packet) {
	if p.Data[1] == 6 {
		if r.have == 0 && r.since == 0 {
			r.server = p.From
			r.ack()
		}
		return
	}
	r.server = p.From
	next := uint16(r.have + 1)
	switch n := binary.BigEndian.Uint16(p.Data[2:]); {
	case n == next && !r.done:
		r.got.Write(p.Data[4:])
		r.have++
		r.since++
		r.done = len(p.Data)-4 < r.block
		if r.done {
			close(r.whole)
		}
		if r.done || r.since == r.window {
			r.ack()
		}
	case n-next < 1000 || r.done: // a block after a gap, or the last ACK was lost
		r.ack()
	}
}

// TestNetworks fetches files over networks of all kinds. Each file must arrive
// whole, and the server must not send many more packets than needed.
func TestNetworks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		net    weather
		excess float64 // the maximum of DATA packets sent per packet needed
	}{
		{"a good one", weather{delay: time.Millisecond}, 1},
		{"one that doubles everything", weather{delay: time.Millisecond, double: 1}, 1},
		{"one that reorders", weather{delay: time.Millisecond, delay2: 0.05}, 2},
		{"one that loses a tenth", weather{delay: 2 * time.Millisecond, loss: 0.1}, 3},
		{"one that does all of it", weather{delay: 2 * time.Millisecond, loss: 0.05, double: 0.2, delay2: 0.1}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(30) {
				pick := rand.New(rand.NewPCG(seed, 1))
				block := 8 + pick.IntN(1461)
				size := pick.IntN(100 * block)
				if seed%3 == 0 {
					size -= size % block // ends with an empty block
				}
				window := []int{1, 2, 4, 8, 64}[seed%5]
				n := network{weather: tt.net, rand: rand.New(rand.NewPCG(seed, 2))}
				synctest.Test(t, func(t *testing.T) {
					crossed(t, &n, size, block, window)
				})
				if window > 8 && tt.excess > 1 {
					continue // after a gap the server sends all later blocks again
				}
				if most := tt.excess * float64(size/block+1); float64(n.data) > most {
					t.Errorf("seed %d: %d blocks in windows of %d took %d packets, want at most %.0f", seed, size/block+1, window, n.data, most)
				}
			}
		})
	}
}

// crossed fetches one file over a network.
func crossed(t *testing.T, n *network, size, block, window int) {
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(n.rand.Uint32())
	}
	var told []tftp.Transfer
	s := &tftp.Server{
		Open: func(client netip.Addr, name string) (tftp.File, error) {
			if name != "loader" || client.String() != "192.0.2.2" {
				return nil, fs.ErrNotExist
			}
			return memory{bytes.NewReader(content)}, nil
		},
		OnTransfer:  func(x tftp.Transfer) { told = append(told, x) },
		StopTimeout: time.Hour,
	}
	client := &receiver{
		addr: netip.MustParseAddrPort("192.0.2.2:2070"), server: netip.MustParseAddrPort("192.0.2.1:69"),
		block: block, window: window, in: make(chan tftp.Packet, 1000), send: n.carry, whole: make(chan struct{}),
	}
	n.clients = map[netip.AddrPort]func(tftp.Packet){client.addr: func(p tftp.Packet) { client.in <- p }}
	n.server = s.UseNetwork(1500, n.carry, client.server)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.Serve(ctx) }()

	ended, end := context.WithCancel(t.Context())
	fetched := make(chan error, 1)
	go func() { fetched <- client.fetch(ended, "loader") }()
	select {
	case <-client.whole:
	case err := <-fetched:
		fetched <- err
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	end()
	if err := <-fetched; err != nil {
		t.Errorf("%d bytes in blocks of %d, windows of %d: %v", size, block, window, err)
	}
	if !bytes.Equal(client.got.Bytes(), content) {
		t.Errorf("%d bytes in blocks of %d, windows of %d: the file is damaged: got %d bytes", size, block, window, client.got.Len())
	}
	time.Sleep(time.Minute) // for packets in transit
	if len(told) != 1 || told[0].Err != nil || told[0].Bytes != int64(size) {
		t.Errorf("%d bytes in blocks of %d, windows of %d: got transfers %+v", size, block, window, told)
	}
}
