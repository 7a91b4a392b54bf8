package dhcp6d

import (
	"sync"
	"time"

	"drover/pools"
)

const (
	// relayLife is how long a relay agent counts as confirmed.
	relayLife = 10 * time.Minute

	// maxRelays bounds the relay agents that count as confirmed.
	maxRelays = 4096
)

// relays is the set of relay agents, and of routers on the way from them, that were confirmed. Those
// that were never in doubt are not in it.
type relays struct {
	mu    sync.Mutex
	until map[pools.MAC]time.Time
}

// has reports whether a relay agent was confirmed.
func (rs *relays) has(mac pools.MAC, now time.Time) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	end, ok := rs.until[mac]
	return ok && now.Before(end)
}

// add adds a relay agent that was confirmed. When there are too many, one is confirmed again.
func (rs *relays) add(mac pools.MAC, now time.Time) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.until == nil {
		rs.until = map[pools.MAC]time.Time{}
	}
	for other := range rs.until {
		if len(rs.until) < maxRelays {
			break
		}
		delete(rs.until, other)
	}
	rs.until[mac] = now.Add(relayLife)
}
