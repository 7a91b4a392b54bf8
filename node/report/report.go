// Package report sends the events of a boot to the server, in the background:
// [Reporter].
package report

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"drover/internal/printable"
	"drover/node/client"
	"drover/node/console"
	"drover/node/retry"
	"drover/pools/boots"
)

// Reporter sends events to the server, in order and in the background: an unreachable
// server does not delay the boot. While events wait, a newer error of a step replaces
// an older one, so that hours of retries do not fill the queue. An error that repeats the
// event before it is reported again after some minutes only.
type Reporter struct {
	// Send tries once. A [retry.Final] or [client.Refused] drops the event, and so does a
	// [client.TooMany] for an error: steps that the boot reaches come after it.
	Send   func(ctx context.Context, e boots.Event) error
	Notice func(e boots.Event, err error) // called for dropped events; may be nil
	Uptime func() time.Duration
	Retry  retry.Backoff

	mu     sync.Mutex
	last   boots.Event // the newest event
	queue  []boots.Event
	wake   chan struct{} // has an element if the queue may have changed; made by Start
	idle   chan struct{} // closed when the queue is empty and nothing is being sent
	cancel context.CancelFunc
	done   chan struct{}
}

// New returns a reporter that prints the events it drops.
func New(con *console.Console) *Reporter {
	return &Reporter{Uptime: console.Uptime, Notice: func(e boots.Event, err error) {
		con.Printf("report", "error: event %q not reported: %v; going on", e.Step, err)
	}}
}

const (
	maxQueue      = 64               // events kept while the server is away
	maxEventText  = 1500             // bytes of detail and of error: both, escaped, fit in pools.MaxEventBody
	eventTimeout  = 5 * time.Second  // of one try
	maxEventRetry = 10 * time.Second // between tries
	repeatAfter   = 600              // seconds until an error is reported again
)

// Report queues the event that a step is done.
func (r *Reporter) Report(step boots.Step, detail string) {
	r.add(boots.Event{Step: step, Detail: eventText(detail)})
}

// Fail queues the event that a step had an error; the node retries.
func (r *Reporter) Fail(step boots.Step, err error) {
	r.add(boots.Event{Step: step, Error: eventText(err.Error())})
}

// tick is the least time between two events, in seconds: the server takes a signed event
// that is not newer than the last one for a repetition.
const tick = 1e-3

func (r *Reporter) add(e boots.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Uptime = max(r.Uptime().Seconds(), r.last.Uptime+tick)
	if e.Error != "" && e.Step == r.last.Step && e.Error == r.last.Error && e.Uptime-r.last.Uptime < repeatAfter {
		return
	}
	r.last = e
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
func (r *Reporter) wakeSender() {
	if r.wake == nil {
		return // not started
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Start begins to send, oldest event first. The goroutine runs in guard, which handles
// a panic. End it with Stop.
func (r *Reporter) Start(guard func(func())) {
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

func (r *Reporter) run(ctx context.Context) {
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

func (r *Reporter) first() (boots.Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return boots.Event{}, false
	}
	return r.queue[0], true
}

func (r *Reporter) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = r.queue[1:]
	if len(r.queue) == 0 {
		close(r.idle)
	}
}

// deliver sends one event until the server has it or refuses it. It returns false if ctx
// ends before.
func (r *Reporter) deliver(ctx context.Context, e boots.Event) bool {
	tries := retry.Retrier{Backoff: r.Retry}
	tries.Backoff.Max = cmp.Or(r.Retry.Max, maxEventRetry)
	err := tries.Do(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, eventTimeout)
		defer cancel()
		err := r.Send(ctx, e)
		if refused, ok := errors.AsType[client.Refused](err); ok {
			return retry.Final{Err: refused}
		}
		if limit, ok := errors.AsType[client.TooMany](err); ok && e.Error != "" {
			return retry.Final{Err: limit}
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

// Flush waits until all events are sent, at most limit and as long as ctx lasts.
func (r *Reporter) Flush(ctx context.Context, limit time.Duration) {
	r.mu.Lock()
	idle, empty := r.idle, len(r.queue) == 0
	started := r.wake != nil
	r.mu.Unlock()
	if empty || !started {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Stop ends sending, and returns the events that the server does not have, as far as the node
// knows. [Reporter.Resume] of the next reporter sends them.
func (r *Reporter) Stop() (unsent []boots.Event) {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue
}

// Resume queues what Stop of an earlier reporter returned. It must be called before Start, and
// before any event of this one.
func (r *Reporter) Resume(unsent []boots.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(unsent) == 0 {
		return
	}
	r.queue, r.last, r.idle = slices.Clone(unsent), unsent[len(unsent)-1], make(chan struct{})
}

// eventText returns a text for an event: without tokens, in one line, of limited length.
func eventText(s string) string {
	return printable.Line(strings.ReplaceAll(strings.TrimSpace(console.Redact(s)), "\n", "; "), maxEventText)
}
