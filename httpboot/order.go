package httpboot

import (
	"sync"
	"time"

	"drover/pools"
)

// order is what a boot is to load, and the nonce that it was given.
type order struct {
	image Image
	dir   string // of the image in URLs, with a slash at its end
	nonce string

	asked pools.NextBoot // what it was made for
	ref   string
	given time.Time
}

// orderTime is how long an order is given out again. No machine gets from its
// script to the next one in less, unless it fetches the same script again.
const orderTime = 30 * time.Second

// orders keeps what boots were given over TFTP. A file is fetched more than
// once there: a size probe opens it and stops, a request whose answer was lost
// comes again, GRUB and U-Boot ask for one script under several names. A nonce
// of its own for each would void the one before, which may be the one that the
// machine goes on with.
type orders struct {
	mu    sync.Mutex
	byMAC map[pools.MAC]*slot
}

// slot is the order of one machine. Its lock is held while one is made.
type slot struct {
	mu    sync.Mutex
	order order // given is zero: none
}

// get returns the order that the machine of p was given a moment ago, or makes
// one.
func (o *orders) get(p *pools.Plan, open func() (order, error)) (order, error) {
	s := o.slot(p.MAC)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order.fresh() && s.order.asked == p.NextBoot && s.order.ref == p.Image {
		return s.order, nil
	}
	made, err := open()
	if err != nil {
		return made, err
	}
	made.asked, made.ref, made.given = p.NextBoot, p.Image, time.Now()
	s.order = made
	return made, nil
}

func (o order) fresh() bool { return !o.given.IsZero() && time.Since(o.given) < orderTime }

// maxSlots is when slots are looked through for old ones.
const maxSlots = 4096

func (o *orders) slot(mac pools.MAC) *slot {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byMAC == nil {
		o.byMAC = map[pools.MAC]*slot{}
	}
	if len(o.byMAC) >= maxSlots {
		o.tidy()
	}
	s := o.byMAC[mac]
	if s == nil {
		s = &slot{}
		o.byMAC[mac] = s
	}
	return s
}

// tidy drops slots that nothing is in. One that is in use stays.
func (o *orders) tidy() {
	for mac, s := range o.byMAC {
		if !s.mu.TryLock() {
			continue
		}
		if !s.order.fresh() {
			delete(o.byMAC, mac)
		}
		s.mu.Unlock()
	}
}

// forget ends what a machine was given: it boots anew, or has used it.
func (o *orders) forget(mac pools.MAC) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byMAC, mac)
}

// Booting tells the server that the firmware of a machine begins a boot: a
// script that it was given before is not its own any more.
func (s *Server) Booting(mac pools.MAC) { s.orders.forget(mac) }
