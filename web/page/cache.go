package page

import (
	"sync"
	"time"

	"drover/web/page/snapshot"
)

// shared is a snapshot of all machines that several requests use, with the pages that were
// rendered from it.
type shared struct {
	*snapshot.Snapshot
	until time.Time // a later request needs another one; by the clock of this process

	mu    sync.Mutex
	pages map[string]*rendered
}

// The lifetime of a snapshot: as long as making it cannot take more than 5 % of a
// processor, within limits. The steps of a boot appear within a second.
const (
	minSnapshot = 200 * time.Millisecond
	maxSnapshot = 2 * time.Second
	costFactor  = 20
)

// maxRendered bounds the pages that a snapshot keeps.
const maxRendered = 256

// cache holds the newest snapshot.
type cache struct {
	mu   sync.Mutex
	last *shared
}

// forget makes the next request see what has changed just now.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

// snapshot returns the newest snapshot, or makes one. Requests that come meanwhile wait for
// it. A change of the farm is always in it.
func (p *page) snapshot() *shared {
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	farm := p.api.Farm.Farm()
	if s := p.cache.last; s != nil && s.Farm == farm && time.Now().Before(s.until) {
		return s
	}
	began := time.Now()
	s := &shared{Snapshot: snapshot.New(p.api, farm), pages: map[string]*rendered{}}
	s.until = time.Now().Add(min(max(costFactor*time.Since(began), minSnapshot), maxSnapshot))
	p.cache.last = s
	return s
}

// rendered is a page of a snapshot.
type rendered struct {
	mu   sync.Mutex
	body []byte
}

// rendered returns the page with a key, which it renders at most once.
func (s *shared) rendered(key string, render func() ([]byte, error)) (body []byte, err error) {
	s.mu.Lock()
	page := s.pages[key]
	if page == nil {
		page = &rendered{}
		if len(s.pages) < maxRendered {
			s.pages[key] = page
		}
	}
	s.mu.Unlock()
	page.mu.Lock()
	defer page.mu.Unlock()
	if page.body == nil {
		page.body, err = render()
	}
	return page.body, err
}
