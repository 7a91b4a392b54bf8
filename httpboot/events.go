package httpboot

import (
	"errors"
	"net/http"
	"sync"
	"unicode/utf8"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/printable"
)

// maxEventText bounds the texts of an event, in bytes.
const maxEventText = 512

// maxUptime bounds an event's uptime, in seconds: ten years.
const maxUptime = 10 * 365 * 24 * 3600

func (h *handler) serveEvent(rec *recorder, r *http.Request) error {
	b, err := h.nonced(rec, r)
	if err != nil {
		return err
	}
	var e boots.Event
	if err := readJSON(r, pools.MaxEventBody, &e); err != nil {
		return err
	}
	if e.Step.Reporter() != boots.ByNode {
		return refuse(http.StatusBadRequest, "step %q is not one that a node reports", cut(string(e.Step), 40))
	}
	if e.Uptime < 0 || e.Uptime > maxUptime {
		return refuse(http.StatusBadRequest, "uptime %g is not a number of seconds since the kernel started", e.Uptime)
	}
	e.Detail, e.Error = printable.Line(e.Detail, maxEventText), printable.Line(e.Error, maxEventText)
	err = h.events.count(b.plan.MAC, b.nonce, func() error { return h.Boots.Step(b.plan.MAC, b.nonce, e) })
	switch {
	case errors.Is(err, errTooMany):
		return refuse(http.StatusTooManyRequests, "a boot may report %d events", h.MaxEvents)
	case err != nil:
		return bootError(err)
	}
	rec.WriteHeader(http.StatusNoContent)
	return nil
}

// cut shortens s to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// eventCounter bounds the events of each boot. It counts those of the last boot
// of each machine.
type eventCounter struct {
	max  int
	mu   sync.Mutex
	seen map[pools.MAC]*eventCount
}

type eventCount struct {
	nonce string
	n     int
}

var errTooMany = errors.New("too many events")

// maxCounted bounds how many machines are counted, and so the memory.
const maxCounted = 1 << 16

// count calls record, unless the boot has had its events. A nonce is known to
// be right once record has returned nil; before, it must not end the count of
// the boot before it.
func (c *eventCounter) count(mac pools.MAC, nonce string, record func() error) error {
	c.mu.Lock()
	e := c.seen[mac]
	if e != nil && e.nonce == nonce {
		if e.n >= c.max {
			c.mu.Unlock()
			return errTooMany
		}
		e.n++ // before record: of many requests at a time each counts
	}
	c.mu.Unlock()
	err := record()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch now := c.seen[mac]; {
	case err != nil:
		if e != nil && e.nonce == nonce {
			e.n--
		}
	case now != nil && now.nonce == nonce:
		if e != now {
			now.n++
		}
	default:
		c.start(mac, nonce)
	}
	return err
}

// start begins the count of a new boot with its first event.
func (c *eventCounter) start(mac pools.MAC, nonce string) {
	if c.seen == nil {
		c.seen = map[pools.MAC]*eventCount{}
	}
	if len(c.seen) >= maxCounted {
		for other := range c.seen {
			delete(c.seen, other)
			break
		}
	}
	c.seen[mac] = &eventCount{nonce: nonce, n: 1}
}
