package state

import (
	"net/netip"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// offer is an address that was offered to a machine, which has not requested it yet.
type offer struct {
	mac        pools.MAC
	node, pool string
	addr       netip.Addr
	expires    time.Time
}

// offers is the set of current offers, one for each machine and each address. So a flood
// of DISCOVERs cannot cause more offers than the ranges have addresses.
type offers struct {
	byMAC  map[pools.MAC]offer
	byAddr map[netip.Addr]pools.MAC
	fifo   []offerEnd // in the order of time; some are of offers that are gone
}

// offerEnd is when the offer to a machine expires. It is small, since it stays after the machine has
// taken its address.
type offerEnd struct {
	mac     pools.MAC
	expires time.Time
}

func newOffers() offers {
	return offers{byMAC: make(map[pools.MAC]offer), byAddr: make(map[netip.Addr]pools.MAC)}
}

// of returns the offer to mac.
func (o *offers) of(mac pools.MAC, now time.Time) (offer, bool) {
	f, ok := o.byMAC[mac]
	return f, ok && now.Before(f.expires)
}

// has reports whether addr is offered, or was until the last call of expire.
func (o *offers) has(addr netip.Addr) bool {
	_, ok := o.byAddr[addr]
	return ok
}

// toOther reports whether addr is offered to another machine than mac.
func (o *offers) toOther(mac pools.MAC, addr netip.Addr, now time.Time) bool {
	other, ok := o.byAddr[addr]
	return ok && other != mac && now.Before(o.byMAC[other].expires)
}

// toSame reports whether addr is offered to mac.
func (o *offers) toSame(mac pools.MAC, addr netip.Addr, now time.Time) bool {
	f, ok := o.of(mac, now)
	return ok && f.addr == addr
}

// hold offers addr to the machine of p. An offer with more than half of its time left is
// not renewed, so that a machine that repeats its DISCOVER does not fill the fifo.
func (o *offers) hold(p *resolve.Plan, addr netip.Addr, now time.Time) {
	mac := p.MAC
	if f, ok := o.byMAC[mac]; ok {
		if f.addr == addr && f.expires.Sub(now) > offerHold/2 {
			return
		}
		o.drop(mac)
	}
	if other, ok := o.byAddr[addr]; ok {
		o.drop(other)
	}
	f := offer{mac, p.Node, p.Pool, addr, now.Add(offerHold)}
	o.byMAC[mac], o.byAddr[addr] = f, mac
	o.fifo = append(o.fifo, offerEnd{mac, f.expires})
}

func (o *offers) drop(mac pools.MAC) {
	if f, ok := o.byMAC[mac]; ok {
		delete(o.byMAC, mac)
		delete(o.byAddr, f.addr)
	}
}

// expire drops the offers whose time is over.
func (o *offers) expire(now time.Time) {
	n := 0
	for n < len(o.fifo) && !now.Before(o.fifo[n].expires) {
		if end := o.fifo[n]; o.byMAC[end.mac].expires.Equal(end.expires) {
			o.drop(end.mac)
		}
		n++
	}
	o.fifo = o.fifo[n:]
}
