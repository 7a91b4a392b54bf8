package lograte

import (
	"net/netip"
	"sync"
	"time"
)

// perMinute is the number of lines of one host in a minute. GRUB fetches 250 files.
const perMinute = 300

// Budget gives each host a number of lines in a minute, so that a room of machines that
// boot at a time has all of its lines, and no machine fills the disk. It is for hosts of
// which there are only so many. The zero value works. It may be used by several
// goroutines, and must not be copied.
type Budget struct {
	mu    sync.Mutex
	begun time.Time // of the minute
	lines map[netip.Addr]int
}

// Allow reports whether to log a line of a host.
func (b *Budget) Allow(host netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.lines == nil || now.Sub(b.begun) >= time.Minute {
		b.begun, b.lines = now, make(map[netip.Addr]int)
	}
	b.lines[host]++
	return b.lines[host] <= perMinute
}
