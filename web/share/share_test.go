package share_test

import (
	"context"
	"testing"
	"testing/synctest"

	"drover/web/share"
)

// TestTake: a client has its share at most, all together have what there is, and a place that
// is released is free again.
func TestTake(t *testing.T) {
	l := share.Limit{Most: 3}
	session := func(person, session string) []share.Share {
		return []share.Share{{Client: "person " + person, Most: 2}, {Client: "session " + session, Most: 1}}
	}
	var release []func()
	for i, tt := range []struct {
		person, session string
		ok              bool
	}{
		{"alice", "a1", true},
		{"alice", "a1", false}, // the session has one
		{"alice", "a2", true},
		{"alice", "a3", false}, // she has two
		{"bob", "b1", true},
		{"carol", "c1", false}, // there are three
	} {
		r, ok := l.Take(session(tt.person, tt.session)...)
		if ok != tt.ok {
			t.Errorf("%d: %s, %s: got %t", i, tt.person, tt.session, ok)
		}
		if ok {
			release = append(release, r)
		}
	}
	release[0]()
	if _, ok := l.Take(session("alice", "a1")...); !ok {
		t.Error("a place that is free again is not")
	}
}

// TestWait: who waits gets the next place, or none when its time is over.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := share.Limit{Most: 1}
		first, _ := l.Take()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan bool)
		for _, ctx := range []context.Context{t.Context(), ctx} {
			go func() {
				_, ok := l.Wait(ctx)
				got <- ok
			}()
		}
		synctest.Wait()
		cancel()
		if <-got {
			t.Error("a place after the end")
		}
		first()
		if !<-got {
			t.Error("no place, and one is free")
		}
	})
}
