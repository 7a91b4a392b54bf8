package dhcpd

import (
	"hash/maphash"
	"net/netip"
	"time"

	"drover/dhcp/ratelimit"
	"drover/pools"
)

// The limits of one client: so many packets at once, and then one in each
// interval. A boot is some four exchanges of two packets within seconds
// (firmware, iPXE, initrd, operating system), and clients that get no answer
// ask again after 4 s (RFC 2131, section 4.1): both stay far below.
const (
	clientBurst    = 20
	clientInterval = 200 * time.Millisecond
)

// The limits of one port of a relay agent, which names the port in option 82, and of a
// host that sends frames for several machines. A chassis with 180 machines stays below.
const (
	portBurst    = 2000
	portInterval = 5 * time.Millisecond
)

// client is the key of a client's limit. What one host sends in the name of another is
// not charged to that: the frames and the relay agents differ.
type client struct {
	mac, sender pools.MAC
	relay       [4]byte
}

// limits keeps clients that ask without pause from taking the time of the others. One
// goroutine uses it at a time.
type limits struct {
	seed    maphash.Seed
	clients *ratelimit.Limiter
	ports   *ratelimit.Limiter
}

func newLimits(now time.Time) *limits {
	return &limits{maphash.MakeSeed(), ratelimit.New(now, 1<<17, clientBurst, clientInterval), ratelimit.New(now, 1<<12, portBurst, portInterval)}
}

// allow reports whether a packet may be answered.
func (l *limits) allow(r *request, now time.Time) bool {
	key := client{mac: r.MAC, sender: r.sender.MAC}
	switch {
	case r.Giaddr.IsValid():
		key.relay = r.Giaddr.As4()
		if !l.allowPort(r.Giaddr, r.RelayInfo(), now) {
			return false
		}
	case r.sender.MAC != r.MAC: // a bridge with a MAC of its own, or one host that plays many
		if !l.ports.Allow(maphash.Comparable(l.seed, r.sender.MAC), now) {
			return false
		}
	}
	return l.clients.Allow(maphash.Comparable(l.seed, key), now)
}

// allowPort reports whether a packet from a port of a relay agent may be answered. The
// packets of a relay agent that names no port are not limited: that may be a whole farm.
func (l *limits) allowPort(relay netip.Addr, port []byte, now time.Time) bool {
	if len(port) == 0 {
		return true
	}
	return l.ports.Allow(maphash.Bytes(l.seed, port)^maphash.Comparable(l.seed, relay.As4()), now)
}
