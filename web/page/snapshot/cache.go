package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"drover/web/api"
)

// Shared is a snapshot that several requests use, with the pages that were rendered from it.
type Shared struct {
	*Snapshot

	mu    sync.Mutex
	made  time.Time     // by the clock of this process
	cost  time.Duration // of it and its pages
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
		s.once[key] = d
	}
	s.mu.Unlock()
	d.made.Do(func() { d.value = f() })
	return d.value.(T)
}

// The lifetime of a snapshot: as long as it and its pages cannot take more than 5 % of a
// processor, within limits. The steps of a boot appear within a second.
const (
	minLife    = 200 * time.Millisecond
	maxLife    = 2 * time.Second
	costFactor = 20
)

// maxPages bounds the pages that a snapshot keeps.
const maxPages = 256

// TagMark stands in a template for the page's own ETag, as a string of JSON. Escaped texts cannot
// have it: it has quotes.
const TagMark = `"@tag@"`

// Cache holds the newest snapshot.
type Cache struct {
	API *api.API

	mu   sync.Mutex
	last *Shared
}

// Forget makes the next request see what has changed just now.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

// Get returns the newest snapshot, or makes one. Requests that come meanwhile wait for it. A
// change of the farm is always in it.
func (c *Cache) Get() *Shared {
	c.mu.Lock()
	defer c.mu.Unlock()
	farm := c.API.Farm.Farm()
	if s := c.last; s != nil && s.Farm == farm && s.fresh() {
		return s
	}
	began := time.Now()
	s := &Shared{Snapshot: New(c.API, farm), pages: map[string]*Page{}, once: map[string]*derived{}}
	s.made = time.Now()
	s.cost = s.made.Sub(began)
	c.last = s
	return s
}

// fresh reports whether a request may still use the snapshot.
func (s *Shared) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.made) < min(max(costFactor*s.cost, minLife), maxLife)
}

// Page is a page of a snapshot.
type Page struct {
	mu   sync.Mutex
	body []byte
	tag  string
}

// Rendered returns the page with a key, which it renders at most once, and its ETag.
func (s *Shared) Rendered(key string, render func() ([]byte, error)) (body []byte, tag string, err error) {
	s.mu.Lock()
	page := s.pages[key]
	if page == nil {
		page = &Page{}
		if len(s.pages) < maxPages {
			s.pages[key] = page
		}
	}
	s.mu.Unlock()
	page.mu.Lock()
	defer page.mu.Unlock()
	if page.body != nil {
		return page.body, page.tag, nil
	}
	began := time.Now()
	if page.body, err = render(); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(page.body)
	page.tag = `"` + hex.EncodeToString(sum[:8]) + `"`
	page.body = bytes.ReplaceAll(page.body, []byte(TagMark), []byte(strconv.Quote(page.tag)))
	s.mu.Lock()
	s.cost += time.Since(began)
	s.mu.Unlock()
	return page.body, page.tag, nil
}
