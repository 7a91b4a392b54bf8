package httpboot

import (
	"net/http"
	"sync"
	"time"
)

// drainRest is the least time that requests get to end after [Server.Drain].
const drainRest = time.Second

// running counts the requests that a handler serves.
type running struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n gets 0; nil: nobody waits
}

func (r *running) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n += n; r.n == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// wait returns a channel that closes as soon as no request runs.
func (r *running) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	if r.n == 0 {
		close(r.idle)
		r.idle = nil
	}
	return idle
}

// Drain waits until no request runs, for [Limits.Grace] at most. Serve goes on meanwhile: machines
// get what they ask for, but no further root images, which they ask for again. When the context of
// Serve ends after Drain, requests have the rest of the grace to end.
func (s *Server) Drain() {
	h := s.serving.Load()
	if h == nil {
		return
	}
	end := time.Now().Add(h.Grace)
	h.drained.Store(&end)
	h.queue.Stop()
	timer := time.NewTimer(h.Grace)
	defer timer.Stop()
	select {
	case <-h.running.wait():
	case <-timer.C:
	}
}

// grace returns the time that requests have to end.
func (h *handler) grace() time.Duration {
	if end := h.drained.Load(); end != nil {
		return max(drainRest, time.Until(*end))
	}
	return h.Grace
}

// counted returns next with each of its requests counted as running.
func (h *handler) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.running.add(1)
		defer h.running.add(-1)
		next.ServeHTTP(w, r)
	})
}
