package auth

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	sessionLife = 12 * time.Hour
	maxSessions = 1000
)

// session is a session of a browser.
type session struct {
	end    time.Time
	of     string  // the principal
	token  digest  // that it began with, or
	person *person // who has logged in without one
}

// sessions holds the sessions in force, by the hash of their cookies. With hashes, the time
// of a look-up reveals nothing about other cookies.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	all map[digest]session
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: make(map[digest]session)}
}

// begin starts a session, and returns its cookie. If there are too many sessions, it ends the
// oldest of the principal that has the most, which may be this one.
func (s *sessions) begin(fresh session) string {
	cookie := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.all, func(_ digest, other session) bool { return !now.Before(other.end) })
	if len(s.all) >= maxSessions {
		delete(s.all, s.surplus(fresh.of))
	}
	fresh.end = now.Add(sessionLife)
	if p := fresh.person; p != nil && !p.end.IsZero() && p.end.Before(fresh.end) {
		fresh.end = p.end
	}
	s.all[sha256.Sum256([]byte(cookie))] = fresh
	return cookie
}

// surplus returns the oldest session of the principal that has the most, with one more of fresh.
func (s *sessions) surplus(fresh string) (first digest) {
	n := map[string]int{fresh: 1}
	for _, other := range s.all {
		n[other.of]++
	}
	for id, other := range s.all {
		f, ok := s.all[first]
		if !ok || cmp.Or(n[f.of]-n[other.of], other.end.Compare(f.end)) < 0 {
			first = id
		}
	}
	return first
}

// of returns a session; false for one that is not in force.
func (s *sessions) of(cookie string) (found session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok = s.all[sha256.Sum256([]byte(cookie))]
	return found, ok && s.now().Before(found.end)
}

func (s *sessions) finish(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(cookie)))
}
