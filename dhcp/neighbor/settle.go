package neighbor

import (
	"net/netip"
	"sync/atomic"
	"time"

	"drover/dhcp"
)

const (
	// settlePatience is how long the sender of a packet has to answer.
	settlePatience = time.Second

	// maxRouters bounds the questions about one packet.
	maxRouters = 16
)

// Settle calls then once, possibly in another goroutine, with whether a packet counts whose verdict
// names addresses: its sender answers for [dhcp.Verdict.Confirm], or for none of Unless, or
// else for one of the routers. Routers that are not on the wire are left out. It returns false, and
// never calls then, when too many packets wait.
func (t *Table) Settle(v dhcp.Verdict, routers []netip.Addr, then func(counts bool)) bool {
	if v.Confirm.IsValid() {
		return t.Ask(Host{v.Confirm, v.By}, settlePatience, then)
	}
	ask := append([]netip.Addr(nil), v.Unless...)
	for _, a := range routers {
		if t.Conn.source(a).IsValid() && len(ask) < maxRouters {
			ask = append(ask, a)
		}
	}
	var machine, settled atomic.Bool
	var left atomic.Int32
	left.Store(int32(len(ask)))
	end := func(counts bool) {
		if settled.CompareAndSwap(false, true) {
			then(counts)
		}
	}
	for i, a := range ask {
		answered := func(ok bool) {
			switch {
			case ok && i >= len(v.Unless):
				end(true)
			case ok:
				machine.Store(true)
			}
			if left.Add(-1) == 0 {
				end(!machine.Load())
			}
		}
		switch {
		case t.Ask(Host{a, v.By}, settlePatience, answered):
		case i == 0:
			return false
		default:
			answered(false)
		}
	}
	return true
}
