// Package watch sends the changes of a list of the REST API as server-sent events
// (text/event-stream, of the HTML standard).
//
// A stream begins with the event list, all elements; then come added, changed and removed,
// each with an element. The last event is end, with a problem that says why the server ends
// the stream. Each event has an ID. A client that comes back with the last one
// in the header Last-Event-ID gets what has changed since, or the event list again if the
// server does not know that any more.
//
// The elements are compared at intervals, while somebody watches: a watch tells how they are,
// not each state between. Watchers share one row of events; one that cannot keep up with it
// is told, and its stream ends. So neither their number nor their speed costs memory.
//
// [Revisions] are streams for open pages: that something has changed, and not what.
//
// The package does not know the elements.
package watch

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drover/web/answer"
	"drover/web/auth"
	"drover/web/share"
)

// Bounds of watches.
const (
	maxEvents = 8192 // of a list, that a watcher may be behind

	interval = time.Second      // between two looks at a list
	lookPart = 20               // a look takes one part in so many of the time, at most
	memory   = time.Minute      // how long events are kept when nobody watches
	silence  = 15 * time.Second // the longest time without a word to a client
)

// Feed is the changes of a list. The fields in capitals must be set. It is safe for concurrent
// use.
type Feed[T any] struct {
	// All returns the list as it is now. Nobody changes its elements later.
	All func() []T
	// Key returns what tells an element from the others.
	Key func(*T) string
	// Shown returns the part of a list that a stream begins with; nil: all of it. It may
	// change the list.
	Shown func([]T) []T
	// Limit counts the watchers of this feed and of others: see [NewLimit].
	Limit *share.Limit

	mu       sync.Mutex
	watchers int
	left     time.Time     // when the last watcher left
	looked   time.Time     // when the list was looked at
	pause    time.Duration // until the next look
	epoch    string        // of the numbers of events
	next     uint64        // the number of the next event
	events   []event[T]    // the last ones
	list     []T           // at the last look
	current  map[string]*version[T]
}

// version is an element at a moment.
type version[T any] struct {
	element T
	json    []byte
}

// event is a change of an element; before or after is nil if it was not there, or is not.
type event[T any] struct{ before, after *version[T] }

// Serve sends the list and its changes, as far as elements fit, until the client leaves, the
// server ends, or the token is not in force any more.
func (f *Feed[T]) Serve(w http.ResponseWriter, r *http.Request, fits func(*T) bool) error {
	client, _ := auth.ClientOf(r)
	release, err := take(f.Limit, w, share.Share{Client: client.Principal(), Most: maxWatchersEach})
	if err != nil {
		return err
	}
	defer release()
	f.join(1)
	defer f.join(-1)
	s := newStream(w, 32<<10)
	if r.Method == http.MethodHead {
		return nil
	}
	at, list, resumed := f.begin(r.Header.Get("Last-Event-ID"))
	if !resumed {
		list = slices.DeleteFunc(list, func(v T) bool { return !fits(&v) })
		if f.Shown != nil {
			list = f.Shown(list)
		}
		sendList(s, f.id(at), list)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.flush() == nil {
		select {
		case <-r.Context().Done():
			return nil
		case <-ending(r).Done():
			s.end(&answer.Error{Code: http.StatusServiceUnavailable, Msg: "the server ends", Remedy: "connect again"})
			return nil
		case <-timer.C:
		}
		timer.Reset(f.look())
		events, known := f.since(at)
		switch {
		case !auth.InForce(r):
			s.end(auth.ErrNoToken)
			return nil
		case !known:
			s.end(&answer.Error{Code: http.StatusServiceUnavailable, Name: "too-slow", Msg: "there were more changes than are kept for a watch", Remedy: "connect again, for the whole list"})
			return nil
		}
		for _, e := range events {
			at++
			send(s, f.id(at), e, fits)
		}
		s.alive(f.id(at))
	}
	return nil
}

// send sends an event as a client sees it for which only some elements are there.
func send[T any](s *stream, id string, e event[T], fits func(*T) bool) {
	before, after := e.before != nil && fits(&e.before.element), e.after != nil && fits(&e.after.element)
	switch {
	case before && after:
		s.send(id, "changed", e.after.json)
	case after:
		s.send(id, "added", e.after.json)
	case before:
		s.send(id, "removed", e.before.json)
	}
}

// sendList sends a list, with one element in memory as text at a time: clients can be slow.
func sendList[T any](s *stream, id string, list []T) {
	s.begin(id, "list")
	s.line([]byte("["))
	for i := range list {
		line, _ := json.Marshal(&list[i]) // the table of routes has its type
		if i < len(list)-1 {
			line = append(line, ',')
		}
		s.line(line)
	}
	s.line([]byte("]"))
	s.finish()
}

// join counts a watcher that comes or goes. Without any the events are kept for a while.
func (f *Feed[T]) join(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers += n; f.watchers == 0 {
		f.left = time.Now()
		time.AfterFunc(memory, f.forget)
	}
}

// forget gives the memory back if nobody has watched for a while.
func (f *Feed[T]) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers == 0 && time.Since(f.left) >= memory {
		f.looked, f.epoch, f.events, f.list, f.current = time.Time{}, "", nil, nil, nil
	}
}

// begin returns where a stream begins: behind the event with an ID, or, if that is not known,
// with a copy of the list.
func (f *Feed[T]) begin(last string) (at uint64, list []T, resumed bool) {
	f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	epoch, number, _ := strings.Cut(last, "-")
	at, err := strconv.ParseUint(number, 10, 64)
	if err == nil && epoch == f.epoch && f.first() <= at && at <= f.next {
		return at, nil, true
	}
	return f.next, slices.Clone(f.list), false
}

// first returns the number of the first event that is kept.
func (f *Feed[T]) first() uint64 { return f.next - uint64(len(f.events)) }

// id returns the ID of the event before a number. The epoch stays while somebody watches.
func (f *Feed[T]) id(at uint64) string { return f.epoch + "-" + strconv.FormatUint(at, 10) }

// since returns the events from a number on; false if they are not all kept.
func (f *Feed[T]) since(at uint64) ([]event[T], bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at < f.first() {
		return nil, false
	}
	return f.events[at-f.first():], true
}

// look compares the list with the one of the last look, unless that was just now, and returns
// the time until the next look.
func (f *Feed[T]) look() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := time.Now()
	if left := f.pause - began.Sub(f.looked); left > 0 && f.current != nil {
		return left
	}
	f.compare(f.All())
	f.looked = time.Now()
	f.pause = max(interval, lookPart*f.looked.Sub(began))
	return f.pause
}

// compare adds the events that lead to a list.
func (f *Feed[T]) compare(list []T) {
	first := f.current == nil
	if first {
		f.epoch, f.next = rand.Text()[:12], 0
	}
	current := make(map[string]*version[T], len(list))
	var added []event[T]
	for i := range list {
		key := f.Key(&list[i])
		before := f.current[key]
		if before != nil && reflect.DeepEqual(&before.element, &list[i]) {
			current[key] = before
			continue
		}
		text, _ := json.Marshal(&list[i]) // the table of routes has its type
		if before != nil && bytes.Equal(before.json, text) {
			current[key] = before
			continue
		}
		current[key] = &version[T]{list[i], text}
		added = append(added, event[T]{before, current[key]})
	}
	for key, before := range f.current {
		if current[key] == nil {
			added = append(added, event[T]{before, nil})
		}
	}
	f.list, f.current = list, current
	if first || len(added) == 0 {
		return
	}
	f.next += uint64(len(added))
	all := append(slices.Clip(f.events), added...) // a new one: watchers read the old one
	f.events = slices.Clone(all[max(0, len(all)-maxEvents):])
}
