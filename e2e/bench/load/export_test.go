package load

import (
	"net/netip"
	"time"
)

// Message returns a machine's message, for tests.
func Message(kind byte, giaddr, address, server netip.Addr, machine, xid uint32) []byte {
	t := newTemplate(kind, giaddr, false)
	b := make([]byte, slot)
	n := t.put(b, machine, xid)
	if kind == request {
		t.choose(b, reply{address: address.As4(), server: server.As4()})
	}
	return b[:n]
}

// Parse decodes a server's message.
func Parse(b []byte) (xid uint32, kind byte, address, server netip.Addr, err error) {
	r, err := parse(b)
	return r.xid, r.kind, netip.AddrFrom4(r.address), netip.AddrFrom4(r.server), err
}

// Room is a set of machines, for tests.
type Room struct{ *machines }

func NewRoom(n int, retry time.Duration) Room { return Room{newMachines(n, retry)} }

// Next is the transaction number of the next DISCOVER, or -1.
func (r Room) Next(now time.Duration) int64 {
	if xid, ok := r.next(now); ok {
		return int64(xid)
	}
	return -1
}

func (r Room) Hear(xid uint32, kind byte, now time.Duration) bool {
	return r.hear(reply{xid: xid, kind: kind}, now)
}

func (r Room) Again()                   { r.again = true }
func (r Room) Count() Counts            { return r.count }
func (r Room) Left() int                { return r.left }
func (r Room) Latency() []time.Duration { return r.latency }

var Quantiles = quantiles
