package wait

import (
	"runtime"
	"time"
)

// Pace lets a long computation give way to what waits for the network. On a host with one processor
// Go has one thread for goroutines, and that asks the kernel for packets only when no goroutine can
// run, or after 10 ms: a DHCP packet that comes meanwhile waits. [runtime.Gosched] is no help, since
// the goroutine can run still. So the computation sleeps, which takes no processor: as short as Go can,
// which is a millisecond if no packet comes. The zero Pace is ready; nil never sleeps.
type Pace struct {
	Slept time.Duration // so far
	since time.Time     // when it last slept, or began
}

const (
	slice = time.Millisecond      // of work
	nap   = 20 * time.Microsecond // long enough to be no wait of zero, which asks for no packets
)

// Step is called between parts of the computation, each of a millisecond or less. It sleeps if it did
// not for that long. With several processors it does not: another thread polls the network.
func (p *Pace) Step() {
	if p == nil {
		return
	}
	now := time.Now()
	switch {
	case p.since.IsZero():
		p.since = now
	case now.Sub(p.since) >= slice && runtime.GOMAXPROCS(0) == 1:
		time.Sleep(nap)
		p.since = time.Now()
		p.Slept += p.since.Sub(now)
	}
}
