package dhcp

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A system call reads at most so many packets, and a visit to the desk
	// so many batches: whatever the flood, answering goes on.
	batchLength = 64
	maxBatches  = 8

	// runLength is how many requests a worker takes with it: few enough that
	// the other workers get some, and that the socket is soon read again.
	runLength = 16

	// When packets keep coming, some are gathered and answered together, and
	// their leases become durable together: waking threads for each of them
	// costs more than answering it. So many at most, since relay agents and
	// switches lose longer bursts of answers, and for so long. What comes
	// after a rest is answered at once.
	maxGathered = 24
	maxGather   = 6 * time.Millisecond
)

// desk is where packets come in. The workers pass it on: who has it reads the
// socket and sorts what came into the queue. A packet is so read and answered
// by the same goroutine, which nobody has to wake.
type desk struct {
	server  *Server
	batch   *batch
	slots   []*request    // what the batch is read into
	spare   []*request    // for use as slots
	read    time.Time     // when something was read last
	pause   time.Duration // from then to the next read, at least
	queue   *queue
	limiter *limiter
	full    outburst

	forgeries outburst
	relay     verdict
}

func newDesk(s *Server) *desk {
	d := &desk{
		server: s, batch: newBatch(batchLength), slots: make([]*request, batchLength),
		queue: newQueue(orDefault(s.Queue, 1024), &s.depth), limiter: newLimiter(s.now()),
	}
	for i := range d.slots {
		d.place(i)
	}
	return d
}

// place puts a spare request where packet i of a batch is read to.
func (d *desk) place(i int) {
	var r *request
	if n := len(d.spare); n > 0 {
		r, d.spare = d.spare[n-1], d.spare[:n-1]
	} else {
		r = &request{buf: make([]byte, bufferSize)}
	}
	d.slots[i] = r
	d.batch.place(i, r.buf)
}

// reuse takes requests back that are answered.
func (d *desk) reuse(done []*request) { d.spare = append(d.spare, done...) }

// take fills run with the requests whose turn it is.
func (d *desk) take(run []*request) []*request {
	for len(run) < cap(run) {
		r := d.queue.take()
		if r == nil {
			break
		}
		run = append(run, r)
	}
	return run
}

// fill queues what has arrived. It waits only when nothing is queued.
func (d *desk) fill(ctx context.Context) {
	wait, total := d.queue.empty(), 0
	if wait {
		rest(time.Until(d.read.Add(d.pause)))
	}
	for range maxBatches {
		n, err := d.server.conn.receive(d.batch, unix.MSG_DONTWAIT)
		if n == 0 && err == nil && wait && ctx.Err() == nil {
			n, err = d.server.conn.receive(d.batch, 0)
		}
		if err != nil || ctx.Err() != nil {
			d.server.pause(ctx, err)
			return
		}
		wait = false
		d.accept(n)
		if total += n; n < batchLength {
			break
		}
	}
	d.gather(total)
}

// rest sleeps, without a timer of the Go runtime: with one, the runtime has
// nothing left to run, and puts its threads to sleep and wakes them again each
// time. A signal ends it early.
func rest(d time.Duration) {
	if d > 0 {
		t := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&t, nil)
	}
}

// gather sets the pause before the next read, so long that no more than
// maxGathered packets come meanwhile if they come as fast as these n.
func (d *desk) gather(n int) {
	if n == 0 {
		return
	}
	now := time.Now()
	d.pause = min(maxGather, now.Sub(d.read)*maxGathered/time.Duration(n))
	d.read = now
}

// accept queues the first n packets of the batch.
func (d *desk) accept(n int) {
	now, clock := d.server.now(), time.Now()
	for i := range n {
		received := now
		arrived, lost := d.batch.notes(i)
		if age := clock.Sub(arrived); !arrived.IsZero() && age > 0 {
			received = now.Add(-age)
		}
		if lost > 0 {
			d.server.dropped.Store(lost)
		}
		d.admit(i, received)
	}
}

// admit queues packet i of the batch, or drops it.
func (d *desk) admit(i int, received time.Time) {
	r := d.slots[i]
	r.n, r.received, r.from = d.batch.length(i), received, d.batch.sender(i).Addr()
	r.glance = look(r.bytes())
	if d.forged(r) {
		d.drop(r, Forged, received)
		if d.forgeries.begins(received) {
			d.server.log().Warn("dhcp: a node sends DHCP in the name of a machine that boots, or of another one",
				"interface", d.server.Interface, "address", r.from, "mac", r.mac)
		}
		return // the slot is used again
	}
	if !d.limiter.allow(r.mac, received) {
		d.drop(r, TooOften, received)
		if d.limiter.refused.begins(received) {
			d.server.log().Warn("dhcp: a client asks too often, most of its packets are dropped", "interface", d.server.Interface, "mac", r.mac)
		}
		return // the slot is used again
	}
	if dropped := d.queue.push(r); dropped != nil {
		d.drop(dropped, QueueFull, received)
		d.spare = append(d.spare, dropped)
		if d.full.begins(received) {
			d.server.log().Warn("dhcp: more requests than can be answered, dropping the oldest", "interface", d.server.Interface)
		}
	}
	d.place(i)
}

// verdict is what was found of a relay agent, and until when that is good.
type verdict struct {
	from   netip.Addr
	forges bool
	until  time.Time
}

// forged is that of the server. Relay agents are few and send much: what was
// found of the last one is good for a second.
func (d *desk) forged(r *request) bool {
	if !r.relayed {
		return d.server.forged(r)
	}
	if r.from != d.relay.from || r.received.After(d.relay.until) {
		d.relay = verdict{r.from, d.server.forged(r), r.received.Add(time.Second)}
	}
	return d.relay.forges
}

func (d *desk) drop(r *request, why Decision, now time.Time) {
	x := r.exchange(why)
	x.Took = now.Sub(r.received)
	d.server.tell(&x)
}
