package auth

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of wrong tokens.
const (
	loginBurst   = 5               // wrong tokens of one address in a row
	loginEvery   = 3 * time.Second // interval at which one more is allowed
	maxAddresses = 1000            // addresses with a counter of their own
)

// loginLimit limits the rate of wrong tokens of each client.
type loginLimit struct {
	now    func() time.Time
	mu     sync.Mutex
	by     map[netip.Prefix]*rate.Limiter
	others *rate.Limiter // shared by clients beyond maxAddresses
}

func newLoginLimit(now func() time.Time) *loginLimit {
	return &loginLimit{now: now, by: make(map[netip.Prefix]*rate.Limiter), others: newLimiter()}
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(loginEvery), loginBurst) }

// allow counts a wrong token of the client, and reports whether it is within the limit.
func (l *loginLimit) allow(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(r).AllowN(l.now(), 1)
}

// exceeded reports whether another wrong one would be beyond the limit.
func (l *loginLimit) exceeded(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(r).TokensAt(l.now()) < 1
}

// of returns the counter of the client.
func (l *loginLimit) of(r *http.Request) *rate.Limiter {
	now := l.now()
	client := Network(r.RemoteAddr)
	lim := l.by[client]
	if lim == nil && len(l.by) >= maxAddresses {
		for other, o := range l.by {
			if o.TokensAt(now) >= loginBurst { // the same as a new limiter
				delete(l.by, other)
			}
		}
	}
	switch {
	case lim != nil:
	case len(l.by) >= maxAddresses:
		lim = l.others
	default:
		lim = newLimiter()
		l.by[client] = lim
	}
	return lim
}

// Network returns the addresses that count as one client: the IPv4 address in
// "address:port", or the /64 of an IPv6 address.
func Network(remote string) netip.Prefix {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return p
}
