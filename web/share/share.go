// Package share divides places among clients, so that no client takes all of them.
//
// It does not know what a place is for.
package share

import (
	"context"
	"sync"
)

// Limit bounds the places that are taken at a time. Most must be set.
type Limit struct {
	Most int

	mu    sync.Mutex
	taken int
	of    map[string]int // places of each client
	freed chan struct{}  // closed when a place is free again; nil: nobody waits
}

// Share is how many places a client may have at a time. A client can be a part of another one,
// such as a session of a person: then it takes a place of both.
type Share struct {
	Client string
	Most   int
}

// Take takes a place. It reports false if there is none, or none for one of the clients.
func (l *Limit) Take(of ...Share) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(of)
}

func (l *Limit) take(of []Share) (release func(), ok bool) {
	if l.taken >= l.Most {
		return nil, false
	}
	for _, s := range of {
		if l.of[s.Client] >= s.Most {
			return nil, false
		}
	}
	if l.of == nil {
		l.of = map[string]int{}
	}
	l.taken++
	for _, s := range of {
		l.of[s.Client]++
	}
	return func() { l.release(of) }, true
}

// Wait is [Limit.Take] that waits for a place until ctx ends.
func (l *Limit) Wait(ctx context.Context, of ...Share) (release func(), ok bool) {
	for {
		l.mu.Lock()
		release, ok = l.take(of)
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		freed := l.freed
		l.mu.Unlock()
		if ok {
			return release, true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (l *Limit) release(of []Share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	for _, s := range of {
		if l.of[s.Client]--; l.of[s.Client] == 0 {
			delete(l.of, s.Client)
		}
	}
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}
