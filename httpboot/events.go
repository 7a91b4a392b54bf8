package httpboot

import (
	"errors"
	"net/http"
	"sync"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/printable"
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
	body, err := readJSON(r, &e)
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
	if h.events.of(b.plan.MAC, b.nonce) >= h.MaxEvents {
		return refuse(http.StatusTooManyRequests, "a boot may report %d events", h.MaxEvents)
	}
	report := boots.Report{Event: e, Nonce: b.nonce}
	if signature := r.Header.Get(pools.SignatureHeader); signature != "" {
		report.Signed = func(key []byte) bool { return pools.IsSigned(key, body, signature) }
	}
	switch err := h.Boots.Report(b.plan.MAC, report); {
	case err == nil:
		h.events.add(b.plan.MAC, b.nonce)
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

type eventCount struct {
	nonce string
	n     int
}

// maxCounted limits the machines that are counted, and so the memory.
const maxCounted = 1 << 16

// of returns the number of events of a boot that were recorded.
func (c *eventCounter) of(mac pools.MAC, nonce string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.seen[mac]; e.nonce == nonce {
		return e.n
	}
	return 0
}

// add counts a recorded event. The nonce is that of the current boot.
func (c *eventCounter) add(mac pools.MAC, nonce string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || len(c.seen) >= maxCounted {
		c.seen = map[pools.MAC]eventCount{}
	}
	e := c.seen[mac]
	if e.nonce != nonce {
		e = eventCount{nonce: nonce}
	}
	e.n++
	c.seen[mac] = e
}
