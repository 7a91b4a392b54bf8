package ra

import (
	"slices"
	"time"
)

const (
	// routerCounts is how long a router is known after its last advertisement. Each
	// minute of that time it is asked for another one.
	routerCounts = 3 * time.Minute
	// maxRouters are known at a time. One is enough for silence.
	maxRouters = 8
)

// routers are the other routers of a wire.
type routers struct{ known []router }

type router struct {
	station
	isDefault bool // for hosts: its lifetime was not zero
	until     time.Time
}

// hear notes an advertisement. It returns false when that changes nothing, or when a
// router says that it is one no longer.
func (r *routers) hear(m message, now time.Time) bool {
	i := slices.IndexFunc(r.known, func(k router) bool { return k.addr == m.from.addr })
	if i >= 0 && (!m.contents || r.known[i].isDefault && !m.router) {
		r.known = slices.Delete(r.known, i, i+1) // RFC 4861, section 6.2.5: it ceases
		return false
	}
	if !m.contents {
		return false
	}
	heard := router{m.from, m.router, now.Add(routerCounts)}
	switch {
	case i >= 0:
		r.known[i] = heard
	case len(r.known) < maxRouters:
		r.known = append(r.known, heard)
	default:
		r.known[len(r.known)-1] = heard
	}
	return true
}

// expire forgets the routers that were not heard for too long.
func (r *routers) expire(now time.Time) {
	r.known = slices.DeleteFunc(r.known, func(k router) bool { return !now.Before(k.until) })
}
