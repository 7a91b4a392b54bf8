// Package netconsole receives by UDP what the kernels of machines print (Linux' netconsole), and
// what their programs send as syslog, and keeps the newest lines of each machine in RAM.
//
// [Parse] reads a datagram. A [Log] keeps the lines: it has a limit for each machine, and for
// all, and machines that no node declares, which anyone can invent, never push out the others.
// A [Server] listens. A datagram says nothing of its sender but the address: anyone on the
// machine's network can send one in its name. Lines are shown to operators, and nothing is
// decided by them.
//
// The package does not know how a machine is found: its caller passes a function.
package netconsole

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"drover/pools"
)

// Line is a line that a machine sent.
type Line struct {
	Time time.Time // when it came
	Boot string    // ID of the machine's boot at that time
	Text string
}

// The limits of a [Log]: 48 MB at most.
const (
	maxBytes    = 64 << 10 // of the lines of one machine
	lineBytes   = 64       // that a line takes beside its text
	maxDeclared = 700      // machines that a node declares
	maxOthers   = 50       // all others

	perSecond = 1000 // lines of one machine; a kernel prints a thousand while it starts
	burst     = 5000
)

// Log keeps the newest lines of machines. The zero value works. It is safe for concurrent use.
type Log struct {
	mu       sync.Mutex
	machines map[pools.MAC]*kept
}

// kept are the lines of a machine, the oldest first.
type kept struct {
	lines    []Line
	bytes    int
	declared bool
	last     time.Time
	limit    *rate.Limiter
}

// Add adds lines of a machine that came at a time, unless it sends too many, and reports whether
// it did. Declared reports whether a node declares it. The machine that has been silent for the
// longest time makes room for a new one.
func (l *Log) Add(mac pools.MAC, declared bool, now time.Time, lines ...Line) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.machines[mac]
	fresh := k == nil || k.declared != declared
	if k == nil {
		if l.machines == nil {
			l.machines = map[pools.MAC]*kept{}
		}
		k = &kept{limit: rate.NewLimiter(perSecond, burst)}
		l.machines[mac] = k
	}
	k.declared, k.last = declared, now
	if fresh {
		l.makeRoom(declared)
	}
	if !k.limit.AllowN(now, len(lines)) {
		return false
	}
	k.add(lines)
	return true
}

// add adds lines. When there are too many, it drops the oldest quarter.
func (k *kept) add(lines []Line) {
	for _, line := range lines {
		k.lines = append(k.lines, line)
		k.bytes += lineBytes + len(line.Text)
	}
	if k.bytes <= maxBytes {
		return
	}
	first := 0
	for ; k.bytes > maxBytes*3/4; first++ {
		k.bytes -= lineBytes + len(k.lines[first].Text)
	}
	k.lines = slices.Clone(k.lines[first:])
}

// makeRoom forgets machines of a kind until they are within the limit.
func (l *Log) makeRoom(declared bool) {
	limit := maxOthers
	if declared {
		limit = maxDeclared
	}
	n := 0
	var oldest pools.MAC
	var since time.Time
	for mac, k := range l.machines {
		if k.declared != declared {
			continue
		}
		if n == 0 || k.last.Before(since) {
			oldest, since = mac, k.last
		}
		n++
	}
	if n > limit {
		delete(l.machines, oldest)
	}
}

// Of returns the lines of a machine, the oldest first.
func (l *Log) Of(mac pools.MAC) []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.machines[mac]; k != nil {
		return slices.Clone(k.lines)
	}
	return nil
}
