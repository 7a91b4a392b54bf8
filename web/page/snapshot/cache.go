package snapshot

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"drover/internal/wait"
	"drover/web/api"
	"drover/web/auth"
)

// Shared is a snapshot that several requests use, with the pages that were rendered from it.
type Shared struct {
	*Snapshot

	mu    sync.Mutex
	made  time.Time     // by the clock of this process
	cost  time.Duration // of it and its pages
	turns turns
	pages map[string]*Page
	once  map[string]*derived
}

// derived is what was made of a snapshot.
type derived struct {
	made  sync.Once
	value any
}

// Once returns what f makes of a snapshot, of which there is one for each key.
func Once[T any](s *Shared, key string, f func() T) T {
	s.mu.Lock()
	d := s.once[key]
	if d == nil {
		d = &derived{}
		if s.once == nil {
			s.once = map[string]*derived{}
		}
		s.once[key] = d
	}
	s.mu.Unlock()
	d.made.Do(func() { d.value = f() })
	return d.value.(T)
}

// The lifetime of a snapshot: as long as it and its pages cannot take more than 4 % of a
// processor, within limits. With 10 000 machines it takes 20 ms, and a list of them 1 ms: the steps
// of a boot appear within a second where one page is open, and within four where 200 different ones
// are.
const (
	minLife    = 200 * time.Millisecond
	maxLife    = 10 * time.Second
	costFactor = 25
)

// maxPages bounds the pages that a snapshot keeps.
const maxPages = 256

// Cache holds the newest snapshot of each group of clients that see the same.
type Cache struct {
	API *api.API

	mu    sync.Mutex
	last  map[string]*Shared // by scopeOf
	turns turns
}

// maxScopes bounds the snapshots: a farm has few groups of pools that clients are limited to.
const maxScopes = 64

// scopeOf returns what all clients have in common that see what a client sees.
func scopeOf(by auth.Client) string { return fmt.Sprintf("%q", by.Pools) }

// turns are the places for computations at a time: one thread fewer than Go has stays free for the
// protocols. On a host with one processor the one computation gives way.
type turns chan struct{}

// take runs a computation in its turn, and returns what it cost: the time that it did not wait.
func (t turns) take(f func(*wait.Pace)) time.Duration {
	if t != nil {
		t <- struct{}{}
		defer func() { <-t }()
	}
	var pace wait.Pace
	pace.Step()
	began := time.Now()
	f(&pace)
	pace.Step() // before the next one
	return time.Since(began) - pace.Slept
}

// Forget makes the next request see what has changed just now.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.last)
}

// Get returns the newest snapshot for a client, or makes one. Requests that come meanwhile wait for
// it. A change of the farm is always in it.
func (c *Cache) Get(by auth.Client) *Shared {
	c.mu.Lock()
	defer c.mu.Unlock()
	farm := c.API.Farm.Farm()
	scope := scopeOf(by)
	if s := c.last[scope]; s != nil && s.Farm == farm && s.fresh() {
		return s
	}
	if c.turns == nil {
		c.turns = make(turns, max(1, runtime.GOMAXPROCS(0)-1))
	}
	s := &Shared{turns: c.turns}
	s.cost = c.turns.take(func(pace *wait.Pace) { s.Snapshot = New(c.API, farm, by, pace) })
	s.made = time.Now()
	if c.last == nil || len(c.last) >= maxScopes {
		c.last = map[string]*Shared{}
	}
	c.last[scope] = s
	return s
}

// ByNode returns the indexes of elements by the node that each is of, in their order.
func ByNode[T any](all []T, node func(*T) string) map[string][]int32 {
	out := make(map[string][]int32, len(all))
	for i := range all {
		name := node(&all[i])
		out[name] = append(out[name], int32(i))
	}
	return out
}

// fresh reports whether a request may still use the snapshot.
func (s *Shared) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.made) < min(max(costFactor*s.cost, minLife), maxLife)
}

// Rendered returns the page with a key, which it renders at most once.
func (s *Shared) Rendered(key string, render func(*wait.Pace) ([]byte, error)) (*Page, error) {
	s.mu.Lock()
	page := s.pages[key]
	if page == nil {
		page = &Page{}
		if s.pages == nil {
			s.pages = map[string]*Page{}
		}
		if len(s.pages) < maxPages {
			s.pages[key] = page
		}
	}
	s.mu.Unlock()
	page.mu.Lock()
	defer page.mu.Unlock()
	if page.parts != nil {
		return page, nil
	}
	var err error
	cost := s.turns.take(func(pace *wait.Pace) {
		var body []byte
		if body, err = render(pace); err == nil {
			page.set(body)
		}
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.cost += cost
	s.mu.Unlock()
	return page, nil
}
