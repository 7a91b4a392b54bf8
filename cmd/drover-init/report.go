package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"drover/pools/boots"
	"drover/pools/printable"
)

// reporter sends events to the server, in order and in the background: an unreachable
// server does not delay the boot. While events wait, a newer error of a step replaces
// an older one, so that hours of retries do not fill the queue.
type reporter struct {
	Send   func(ctx context.Context, e boots.Event) error // one try; a finalError or refusedError drops the event
	Notice func(e boots.Event, err error)                 // called for dropped events; may be nil
	Uptime func() time.Duration
	Retry  backoff

	mu     sync.Mutex
	last   float64 // uptime of the newest event
	queue  []boots.Event
	wake   chan struct{} // has an element if the queue may have changed; made by start
	idle   chan struct{} // closed when the queue is empty and nothing is being sent
	cancel context.CancelFunc
	done   chan struct{}
}

// newReporter returns a reporter that prints the events it drops.
func newReporter(con *console) *reporter {
	return &reporter{Uptime: uptime, Notice: func(e boots.Event, err error) {
		con.printf("report", "error: event %q not reported: %v; going on", e.Step, err)
	}}
}

const (
	maxQueue      = 64               // events kept while the server is away
	maxEventText  = 1500             // bytes of detail and of error: both, escaped, fit in pools.MaxEventBody
	eventTimeout  = 5 * time.Second  // of one try
	maxEventRetry = 10 * time.Second // between tries
)

// report queues the event that a step is done.
func (r *reporter) report(step boots.Step, detail string) {
	r.add(boots.Event{Step: step, Detail: eventText(detail)})
}

// fail queues the event that a step had an error; the node retries.
func (r *reporter) fail(step boots.Step, err error) {
	r.add(boots.Event{Step: step, Error: eventText(err.Error())})
}

// tick is the least time between two events, in seconds: the server takes a signed event
// that is not newer than the last one for a repetition.
const tick = 1e-3

func (r *reporter) add(e boots.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Uptime = max(r.Uptime().Seconds(), r.last+tick)
	r.last = e.Uptime
	// The first event may be in transmission: it stays as it is.
	if n := len(r.queue); n > 1 && e.Error != "" && r.queue[n-1].Step == e.Step && r.queue[n-1].Error != "" {
		r.queue[n-1] = e
		return
	}
	if len(r.queue) >= maxQueue {
		return
	}
	if len(r.queue) == 0 {
		r.idle = make(chan struct{})
	}
	r.queue = append(r.queue, e)
	r.wakeSender()
}

// wakeSender wakes the sender. The caller holds the lock.
func (r *reporter) wakeSender() {
	if r.wake == nil {
		return // not started
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// start begins to send, oldest event first. The goroutine runs in guard, which handles
// a panic. End it with stop.
func (r *reporter) start(guard func(func())) {
	ctx, cancel := context.WithCancel(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = cancel
	r.done = make(chan struct{})
	r.wake = make(chan struct{}, 1)
	r.wakeSender()
	go guard(func() {
		defer close(r.done)
		r.run(ctx)
	})
}

func (r *reporter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for {
			e, ok := r.first()
			if !ok {
				break
			}
			if !r.deliver(ctx, e) {
				return
			}
			r.drop()
		}
	}
}

func (r *reporter) first() (boots.Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return boots.Event{}, false
	}
	return r.queue[0], true
}

func (r *reporter) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = r.queue[1:]
	if len(r.queue) == 0 {
		close(r.idle)
	}
}

// deliver sends one event until the server has it or refuses it. It returns false if ctx
// ends before.
func (r *reporter) deliver(ctx context.Context, e boots.Event) bool {
	retry := retrier{Backoff: r.Retry}
	retry.Backoff.Max = cmp.Or(r.Retry.Max, maxEventRetry)
	err := retry.do(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, eventTimeout)
		defer cancel()
		err := r.Send(ctx, e)
		if refused, ok := errors.AsType[refusedError](err); ok {
			return finalError{refused}
		}
		return err
	})
	if ctx.Err() != nil {
		return false
	}
	if err != nil && r.Notice != nil {
		r.Notice(e, err)
	}
	return true
}

// flush waits until all events are sent, at most limit.
func (r *reporter) flush(limit time.Duration) {
	r.mu.Lock()
	idle, empty := r.idle, len(r.queue) == 0
	started := r.wake != nil
	r.mu.Unlock()
	if empty || !started {
		return
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}

// stop ends sending; events still queued are lost.
func (r *reporter) stop() {
	if r.cancel == nil {
		return
	}
	r.cancel()
	<-r.done
}

// eventText returns a text for an event: without tokens, in one line, of limited length.
func eventText(s string) string {
	return printable.Line(strings.ReplaceAll(strings.TrimSpace(redact(s)), "\n", "; "), maxEventText)
}
