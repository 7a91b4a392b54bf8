package load

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"time"
)

// Load describes the load on a server.
type Load struct {
	Server   netip.Addr    // address of the server
	Relay    netip.Addr    // the client: an address of this host, and giaddr
	Rate     float64       // exchanges to begin each second
	Duration time.Duration // time in which exchanges are begun
	Machines int           // number of machines that ask, at most 65536
	Boots    bool          // machines are iPXE, whose boots begin
	Again    bool          // machines that were served ask again, when it is their turn

	// Retry makes a machine without an OFFER ask again after this time, and one
	// without an ACK after a second, until it is served: as many machines do at a
	// server that cannot keep up. Without Again the run ends early when half of
	// them are served, since the others could not keep up the rate. Zero: without Again each
	// machine asks once, and the run ends early when all have asked.
	Retry time.Duration
}

// Result is the result of a [Load].
type Result struct {
	Counts
	Sending   time.Duration // time in which exchanges were begun
	Completed int           // exchanges completed in that time; Acks also counts later ones
	P50, P99  time.Duration // from the first DISCOVER to the ACK, of those completed
	Max       time.Duration
	Stalled   time.Duration // time in which the generator could not begin exchanges; it did not make up for them
}

// Begun returns the rate at which exchanges were begun.
func (r Result) Begun() float64 { return perSecond(r.Discovers, r.Sending) }

// Rate returns the rate at which exchanges were completed.
func (r Result) Rate() float64 { return perSecond(r.Completed, r.Sending) }

// Loss returns the share of exchanges that were begun and not completed, 0 to 1.
func (r Result) Loss() float64 {
	if r.Discovers == 0 {
		return 1
	}
	return 1 - float64(r.Acks)/float64(r.Discovers)
}

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// catchUp is the longest delay of the generator that it makes up for. More would be a
// burst beyond the rate.
const catchUp = 20 * time.Millisecond

// Run generates the load. It needs the privilege to bind port 67.
func Run(ctx context.Context, l Load) (res Result, err error) {
	if l.Machines < 1 || l.Machines > 1<<16 || l.Rate <= 0 {
		return res, fmt.Errorf("%d machines at %g/s (want 1 to 65536, and a rate)", l.Machines, l.Rate)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := open(l.Relay, l.Server)
	if err != nil {
		return res, err
	}
	defer s.close()
	g := &generator{
		Load: l, socket: s, machines: newMachines(l.Machines, l.Retry),
		discover: newTemplate(discover, l.Relay, l.Boots), request: newTemplate(request, l.Relay, l.Boots), start: time.Now(),
	}
	g.again = l.Again
	if err := g.send(ctx); err != nil {
		return res, err
	}
	res.Sending, res.Completed, res.Stalled = g.now(), g.count.Acks, g.stalled
	if err := g.drain(ctx); err != nil {
		return res, err
	}
	res.Counts = g.count
	q := quantiles(g.latency, 0.5, 0.99, 1)
	res.P50, res.P99, res.Max = q[0], q[1], q[2]
	return res, nil
}

// generator is a run.
type generator struct {
	Load
	*socket
	*machines
	discover, request template

	start   time.Time
	stalled time.Duration
}

func (g *generator) now() time.Duration { return time.Since(g.start) }

// send begins exchanges for the duration of the load, and continues those that the server
// answers.
func (g *generator) send(ctx context.Context) error {
	step := time.Duration(float64(time.Second) / g.Rate)
	due := time.Duration(0) // when the next exchange begins
	message := make([]byte, len(g.discover.bytes))
	for ctx.Err() == nil {
		now := g.now()
		if now >= g.Duration || g.left <= 0 {
			return nil
		}
		if late := now - due; late > catchUp {
			g.stalled += late
			due = now
		}
		for n := 0; due <= now && n < batch; n++ {
			due += step
			xid, ok := g.next(now)
			if !ok {
				break
			}
			g.discover.put(message, xid&0xffff, xid)
			g.addAlike(message)
		}
		if err := g.turnaround(min(due-now, time.Millisecond)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// drain waits for the exchanges that are not complete.
func (g *generator) drain(ctx context.Context) error {
	for end := g.now() + patience; g.now() < end; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := g.turnaround(time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// turnaround sends the queued messages and handles those that have arrived. Without any it
// sleeps for the given time.
func (g *generator) turnaround(rest time.Duration) error {
	idle := len(g.alike) == 0
	if err := g.flushAlike(); err != nil {
		return err
	}
	now := g.now()
	n, err := g.receive(func(b []byte) { g.answer(b, now) })
	if err != nil {
		return err
	}
	if n == 0 && idle && rest > 0 {
		return g.wait(rest)
	}
	return g.flush()
}

// answer handles one message, and queues the REQUEST that follows it.
func (g *generator) answer(b []byte, now time.Duration) {
	r, err := parse(b)
	if err != nil {
		g.count.Useless++
		return
	}
	if g.hear(r, now) {
		g.add(func(b []byte) int {
			n := g.request.put(b, r.xid&0xffff, r.xid)
			g.request.choose(b, r)
			return n
		})
	}
}
