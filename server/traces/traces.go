// Package traces sends each boot to a collector of OpenTelemetry, as one trace: OTLP over HTTP, in
// JSON. [Encode] is pure; a [Sender] decides when a boot is complete, and sends it.
//
// A boot is sent once: when it has ended and no further step has come for some seconds, when the
// machine has begun another one, or when an hour has passed. What a collector does not take after
// some tries is dropped, and counted. Nothing waits for a collector.
//
// The package does not know how boots are stored: one that is under way when the server stops is
// not sent.
package traces

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"drover/pools"
	"drover/pools/boots"
)

// The limits of a [Sender].
const (
	maxOpen     = 10_000           // boots under way; more are not sent
	maxWaiting  = 2000             // complete boots that wait to be sent
	maxBatch    = 100              // boots of a request
	afterlife   = 10 * time.Second // from the end of a boot until it is sent: a cluster can see a Node Ready before the node reports that it has joined
	every       = 2 * time.Second  // between two looks
	tryFor      = 10 * time.Second // one request
	tries       = 4                // for one request
	firstPause  = 2 * time.Second  // between two tries; each pause is twice the one before
	maxResponse = 64 << 10         // bytes that are read of an answer
)

// Sender sends boots. Set its fields before use.
type Sender struct {
	URL     string // of the collector, such as http://127.0.0.1:4318/v1/traces
	Version string // of drover
	Log     *slog.Logger
	OnSent  func(boots int, err error) // called for each request; nil is allowed
	Now     func() time.Time           // nil: time.Now
	HTTP    *http.Client               // nil: one that follows no redirects

	mu   sync.Mutex
	open map[pools.MAC]*openBoot
	done []boots.Record // the oldest first
}

// openBoot is a boot under way.
type openBoot struct {
	record boots.Record
	last   time.Time // when its last step came
}

// Step takes note of a boot that has gained a step. Boots count from the script on: anyone can
// send the packets before it.
func (s *Sender) Step(b boots.Record, step boots.StepTime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[b.MAC]
	switch {
	case o != nil && o.record.ID == b.ID:
	case step.Step.Rank() < boots.StepScript.Rank() || o != nil && b.ID < o.record.ID:
		return
	case o != nil:
		s.complete(o.record)
		delete(s.open, b.MAC)
		fallthrough
	default:
		if len(s.open) >= maxOpen || b.Ended() { // it was sent already
			return
		}
		if s.open == nil {
			s.open = map[pools.MAC]*openBoot{}
		}
		o = new(openBoot)
		s.open[b.MAC] = o
	}
	o.record, o.last = b, s.now()
}

// complete adds a boot to those to be sent. The caller holds the lock.
func (s *Sender) complete(b boots.Record) {
	if len(s.done) < maxWaiting {
		s.done = append(s.done, b)
	} else {
		s.sent(1, fmt.Errorf("%d boots wait already", maxWaiting))
	}
}

// batch returns boots to be sent.
func (s *Sender) batch() []boots.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for mac, o := range s.open {
		if o.record.Ended() && now.Sub(o.last) >= afterlife || now.Sub(o.record.Started) > boots.Longest {
			s.complete(o.record)
			delete(s.open, mac)
		}
	}
	n := min(len(s.done), maxBatch)
	batch := s.done[:n:n]
	s.done = s.done[n:]
	return batch
}

// Run sends boots until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	working := true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for batch := s.batch(); len(batch) > 0 && ctx.Err() == nil; batch = s.batch() {
			err := s.send(ctx, batch)
			if err != nil && working && ctx.Err() == nil {
				s.Log.Warn("trace export failed", "url", s.URL, "err", err)
			} else if err == nil && !working {
				s.Log.Info("trace export works again", "url", s.URL)
			}
			working = err == nil
			s.sent(len(batch), err)
		}
	}
}

// send sends boots with one request, and tries it again.
func (s *Sender) send(ctx context.Context, batch []boots.Record) error {
	body, err := Encode(s.Version, batch...)
	if err != nil {
		return err
	}
	pause := firstPause
	for try := 1; ; try++ {
		again, err := s.post(ctx, body)
		if err == nil || !again || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// post sends one request. Again reports whether another try may succeed.
func (s *Sender) post(ctx context.Context, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client().Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponse)) // only to use the connection again
	switch resp.StatusCode {
	case http.StatusOK:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("the collector answered %s", resp.Status)
}

func (s *Sender) client() *http.Client {
	if s.HTTP == nil {
		s.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return s.HTTP
}

func (s *Sender) sent(n int, err error) {
	if s.OnSent != nil {
		s.OnSent(n, err)
	}
}

func (s *Sender) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
