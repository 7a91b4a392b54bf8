package ra

import (
	"net/netip"
	"time"

	"drover/pools"
)

// The bounds that tests need.
const (
	MaxFrame     = maxFrame
	RouterCounts = routerCounts
)

// Wire decides for an interface.
type Wire struct{ w *wire }

// NewWire makes one.
func NewWire(mac pools.MAC, addr netip.Addr, content Advertisement, now time.Time) Wire {
	return Wire{newWire(station{mac, addr}, content, newLimits(now), now)}
}

// Receive takes a frame.
func (w Wire) Receive(f []byte, now time.Time) ([]byte, Packet) { return w.w.receive(f, now) }

// Tick returns the frames that are due.
func (w Wire) Tick(now time.Time) [][]byte { return w.w.tick(now) }

// Next returns when Tick is to be called.
func (w Wire) Next(limit time.Time) time.Time { return w.w.next(limit) }

// Routers is how many other routers are known.
func (w Wire) Routers() int { return len(w.w.routers.known) }
