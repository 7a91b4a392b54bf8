package httpboot

import (
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"sync"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/boots"
)

// maxEventText limits the texts of an event, in bytes.
const maxEventText = 512

// maxUptime limits an event's uptime, in seconds: ten years.
const maxUptime = 10 * 365 * 24 * 3600

func (h *handler) serveEvent(rec *recorder, r *http.Request) error {
	b, err := h.withNonce(rec, r)
	if err != nil {
		return err
	}
	var e boots.Event
	body, err := readJSON(rec, r, pools.MaxEventBody, &e)
	if err != nil {
		return err
	}
	if e.Step.Reporter() != boots.ByNode {
		return refuse(http.StatusBadRequest, "step %q is not one that a node reports", printable.Line(string(e.Step), 40))
	}
	if e.Uptime < 0 || e.Uptime > maxUptime {
		return refuse(http.StatusBadRequest, "uptime %g is not a number of seconds since the kernel started", e.Uptime)
	}
	e.Detail, e.Error = printable.Line(e.Detail, maxEventText), printable.Line(e.Error, maxEventText)
	// Concurrent requests may exceed the limit by the number of connections.
	if count := h.events.of(b.plan.MAC, b.nonce); count.n >= h.MaxEvents && count.counts(e) {
		if e.Error == "" { // the timeline has it
			rec.WriteHeader(http.StatusNoContent)
			return nil
		}
		return refuse(http.StatusTooManyRequests, "a boot may report %d events", h.MaxEvents)
	}
	report := boots.Report{Event: e, Nonce: b.nonce}
	if signature := r.Header.Get(pools.SignatureHeader); signature != "" {
		report.Signed = func(key []byte) bool { return pools.IsSigned(key, body, signature) }
	}
	switch err := h.server.Boots.Report(b.plan.MAC, report); {
	case err == nil:
		h.events.add(b.plan.MAC, b.nonce, e)
	case !errors.Is(err, boots.ErrRepeated): // the answer to the first one was lost
		return bootError(err)
	}
	rec.WriteHeader(http.StatusNoContent)
	return nil
}

// eventCounter counts the events of the newest boot of each machine.
type eventCounter struct {
	mu   sync.Mutex
	seen map[pools.MAC]eventCount
}

// eventCount is what one boot has reported.
type eventCount struct {
	nonce   string
	n       int    // events that count
	reached uint32 // steps without an error, by rank
	last    uint64 // identifies the last event if it was an error, else 0
}

// counts reports whether an event counts against the limit: a node that tries for hours
// repeats its error, and each step of the boot must arrive after that.
func (c eventCount) counts(e boots.Event) bool {
	if e.Error == "" {
		return c.reached&(1<<e.Step.Rank()) != 0
	}
	return c.last != errorID(e)
}

// errorID identifies an error of a step.
func errorID(e boots.Event) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, string(e.Step)+" "+e.Error) // never an error
	return h.Sum64()
}

// maxCounted limits the machines that are counted, and so the memory.
const maxCounted = 1 << 16

// of returns the count of a boot.
func (c *eventCounter) of(mac pools.MAC, nonce string) eventCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(mac, nonce)
}

func (c *eventCounter) locked(mac pools.MAC, nonce string) eventCount {
	if count := c.seen[mac]; count.nonce == nonce {
		return count
	}
	return eventCount{nonce: nonce}
}

// add counts a recorded event. The nonce is that of the current boot.
func (c *eventCounter) add(mac pools.MAC, nonce string, e boots.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.locked(mac, nonce)
	if count.counts(e) {
		count.n++
	}
	if count.last = 0; e.Error != "" {
		count.last = errorID(e)
	} else {
		count.reached |= 1 << e.Step.Rank()
	}
	if c.seen == nil || len(c.seen) >= maxCounted {
		c.seen = map[pools.MAC]eventCount{}
	}
	c.seen[mac] = count
}
