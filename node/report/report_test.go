package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/node/client"
	"drover/node/retry"
	"drover/pools"
	"drover/pools/boots"
)

// eventServer receives events; while it is away, sending fails.
type eventServer struct {
	mu   sync.Mutex
	away bool
	got  []string
}

func (h *eventServer) setAway(away bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = away
}

func (h *eventServer) events() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

func (h *eventServer) send(_ context.Context, e boots.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away {
		return errors.New("no route to host")
	}
	h.got = append(h.got, strings.TrimSpace(fmt.Sprintf("%s %s%s", e.Step, e.Detail, e.Error)))
	return nil
}

func fixedUptime() time.Duration { return 3200 * time.Millisecond }

func (h *eventServer) reporter() *Reporter { return &Reporter{Send: h.send, Uptime: fixedUptime} }

func plain(f func()) { f() }

func wantEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("events: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventServer{}
		r := h.reporter()
		r.Report(boots.StepInit, "runs")  // before there is a network
		r.Flush(t.Context(), time.Second) // does not wait: sending has not started
		r.Start(plain)
		r.Report(boots.StepNetwork, "eth0")
		r.Fail(boots.StepImage, errors.New("cut"))
		r.Flush(t.Context(), time.Second)
		wantEvents(t, h.events(), "init runs", "network eth0", "image cut")
		r.Report(boots.StepImage, "done")
		r.Flush(t.Context(), time.Second)
		wantEvents(t, h.events()[3:], "image done")
		r.Stop()
	})
}

func TestReporterServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventServer{away: true}
		r := h.reporter()
		r.Start(plain)
		r.Report(boots.StepInit, "runs")
		r.Report(boots.StepNetwork, "eth0")
		for i := range 1000 {
			r.Fail(boots.StepImage, fmt.Errorf("try %d", i))
		}
		start := time.Now()
		r.Flush(t.Context(), 2*time.Second)
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("flush: took %v, want 2s", got)
		}
		wantEvents(t, h.events())
		time.Sleep(10 * time.Minute)
		h.setAway(false)
		r.Flush(t.Context(), time.Minute)
		wantEvents(t, h.events(), "init runs", "network eth0", "image try 999")
		r.Stop()
	})
}

// TestReporterStopsWhileAway: the next reporter sends what the first one could not.
func TestReporterStopsWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventServer{}
		r := h.reporter()
		r.Start(plain)
		r.Report(boots.StepInit, "runs")
		r.Flush(t.Context(), time.Second)
		h.setAway(true)
		r.Report(boots.StepNetwork, "eth0")
		r.Report(boots.StepSwitch, "leaves")
		synctest.Wait()
		unsent := r.Stop() // must return
		h.setAway(false)
		next := h.reporter()
		next.Resume(unsent)
		next.Report(boots.StepOnline, "here")
		if last := next.queue[2]; last.Uptime <= unsent[1].Uptime {
			t.Errorf("an event at %g s after one at %g s: the server takes it for a repetition", last.Uptime, unsent[1].Uptime)
		}
		next.Start(plain)
		next.Flush(t.Context(), time.Second)
		wantEvents(t, h.events(), "init runs", "network eth0", "switch-root leaves", "online here")
		if left := next.Stop(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	(&Reporter{}).Stop() // never started
}

func TestReporterDropsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventServer{}
		r := h.reporter()
		var said fixture.Log
		r.Notice = func(e boots.Event, err error) { said.Printf("%s: %v", e.Step, err) }
		r.Send = func(ctx context.Context, e boots.Event) error {
			if e.Step == boots.StepInit {
				return client.Refused{Err: boots.ErrNonce}
			}
			return h.send(ctx, e)
		}
		r.Start(plain)
		r.Report(boots.StepInit, "")
		r.Report(boots.StepNetwork, "")
		r.Flush(t.Context(), time.Second)
		r.Stop()
		wantEvents(t, h.events(), "network")
		fixture.WantText(t, "notice", said.String(), "init: nonce is not the one")
	})
}

// TestReporterAtLimit: an error that the server does not take any more is dropped, and the
// steps after it arrive.
func TestReporterAtLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventServer{}
		r := h.reporter()
		busy := 0
		r.Send = func(ctx context.Context, e boots.Event) error {
			if e.Error != "" || busy == 0 {
				busy++
				return retry.Busy{Err: client.TooMany{Err: errors.New("a boot may report 200 events")}}
			}
			return h.send(ctx, e)
		}
		r.Start(plain)
		r.Report(boots.StepNetwork, "") // too many connections
		r.Fail(boots.StepOnline, errors.New("no route"))
		r.Fail(boots.StepOnline, errors.New("no server"))
		r.Report(boots.StepOnline, "")
		r.Report(boots.StepJoined, "")
		r.Flush(t.Context(), time.Minute)
		r.Stop()
		wantEvents(t, h.events(), "network", "online", "joined")
		if busy != 2 { // the second error has replaced the first
			t.Errorf("got %d refusals, want 2", busy)
		}
	})
}

// TestReporterRepeats: an error that repeats the event before it is sent again after ten
// minutes only.
func TestReporterRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventServer{}
		start := time.Now()
		r := &Reporter{Send: h.send, Uptime: func() time.Duration { return time.Since(start) }}
		r.Start(plain)
		defer r.Stop()
		for range 30 { // half an hour
			r.Fail(boots.StepJoined, errors.New("no server"))
			time.Sleep(time.Minute)
		}
		wantEvents(t, h.events(), "joined no server", "joined no server", "joined no server")
		r.Fail(boots.StepJoined, errors.New("no route"))
		r.Fail(boots.StepJoined, errors.New("no server"))
		r.Fail(boots.StepOnline, errors.New("no server"))
		r.Report(boots.StepOnline, "")
		r.Fail(boots.StepOnline, errors.New("no server"))
		r.Flush(t.Context(), time.Minute)
		// The one that waited was replaced.
		if got := h.events()[3:]; !slices.Contains(got, "joined no server") || !slices.Equal(got[len(got)-3:], []string{"online no server", "online", "online no server"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestReporterIsBounded(t *testing.T) {
	r := (&eventServer{}).reporter()
	for i := range 1000 {
		r.Report(boots.StepInit, fmt.Sprint(i))
	}
	if len(r.queue) != maxQueue {
		t.Errorf("got %d events kept, want %d", len(r.queue), maxQueue)
	}
}

func TestEventText(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"lines", " one\ntwo\n", "one; two"},
		{"token", "token abcdef.0123456789abcdef", "token [token]"},
		{"control characters", "a\x00b\x1b", "a?b?"},
	} {
		if got := eventText(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	// JSON escapes take several bytes for one.
	for _, long := range []string{strings.Repeat(`"`, 9999), strings.Repeat("€", 9999), strings.Repeat("<&>", 9999)} {
		e := boots.Event{Step: boots.StepSwitch, Uptime: 123456.789012345, Detail: eventText(long), Error: eventText(long)}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
		if b.Len() > pools.MaxEventBody {
			t.Errorf("event of %.3s...: got %d bytes, want at most %d", long, b.Len(), pools.MaxEventBody)
		}
	}
}

// TestUptimes: no two events have the same uptime: the server takes a repetition for one
// that it has.
func TestUptimes(t *testing.T) {
	rep := &Reporter{Uptime: fixedUptime}
	rep.Report(boots.StepConfig, "")
	rep.Report(boots.StepSwitch, "")
	if a, b := rep.queue[0].Uptime, rep.queue[1].Uptime; a != 3.2 || b <= a || b > 3.3 {
		t.Errorf("got uptimes %g and %g, want 3.2 and a bit more", a, b)
	}
}
