package token_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/kube/token"
)

// sharedCluster is a cluster that holds shared tokens. It can be made to fail.
type sharedCluster struct {
	mu     sync.Mutex
	broken bool
	tokens []string // ids, the oldest first
	minted int
	saved  []token.Shared
}

func (c *sharedCluster) do(f func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return errors.New("no leader")
	}
	f()
	return nil
}

func (c *sharedCluster) Put(id string) error {
	return c.do(func() {
		if !slices.Contains(c.tokens, id) {
			c.tokens = append(c.tokens, id)
			c.minted++
		}
	})
}

func (c *sharedCluster) Signed(id string) (exists bool, err error) {
	err = c.do(func() { exists = slices.Contains(c.tokens, id) })
	return exists, err
}

func (c *sharedCluster) Delete(id string) error {
	return c.do(func() { c.tokens = slices.DeleteFunc(c.tokens, func(t string) bool { return t == id }) })
}

func (c *sharedCluster) save(tokens []token.Shared) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved = slices.Clone(tokens)
	return nil
}

// holds returns the IDs of the tokens in the cluster, and the number ever created.
func (c *sharedCluster) holds() ([]string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tokens), c.minted
}

func (c *sharedCluster) fail(broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = broken
}

// start runs a rotation with the saved tokens, until stop is called.
func (c *sharedCluster) start(t *testing.T) (r *token.Rotation, stop func()) {
	c.mu.Lock()
	before := slices.Clone(c.saved)
	c.mu.Unlock()
	r = token.NewTestRotation(c, 24*time.Hour, 12*time.Hour, before, c.save)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	synctest.Wait()
	return r, func() { cancel(); <-done }
}

func newest(t *testing.T, r *token.Rotation) string {
	t.Helper()
	tok, ok := r.Newest()
	if !ok {
		t.Fatal("there is no token")
	}
	if d := time.Until(tok.Expires); d <= 0 || d > 24*time.Hour {
		t.Errorf("the token is valid for %s", d)
	}
	return tok.ID
}

// A week with a token every twelve hours: two are valid at any time, and older ones are
// deleted.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &sharedCluster{}
		r, stop := c.start(t)
		defer stop()
		var given []string
		for turn := range 14 {
			id := newest(t, r)
			given = append(given, id)
			held, minted := c.holds()
			if minted != turn+1 {
				t.Fatalf("turn %d: %d tokens were made", turn, minted)
			}
			if want := given[max(0, turn-1):]; !slices.Equal(held, want) {
				t.Errorf("turn %d: the cluster holds %q, want %q", turn, held, want)
			}
			time.Sleep(12*time.Hour - time.Minute)
			synctest.Wait()
			if got := newest(t, r); got != id {
				t.Errorf("turn %d: rotated early", turn)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
	})
}

// A server that restarts continues with the saved tokens, and mints only when due.
func TestRotationSurvivesRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &sharedCluster{}
		first := ""
		for range 5 {
			r, stop := c.start(t)
			id := newest(t, r)
			if first == "" {
				first = id
			}
			if _, minted := c.holds(); minted != 1 || id != first {
				t.Errorf("%d tokens were made, the newest is %s, the first %s", minted, id, first)
			}
			stop()
			time.Sleep(2 * time.Hour)
		}
		time.Sleep(2 * time.Hour) // twelve in all
		r, stop := c.start(t)
		if id := newest(t, r); id == first {
			t.Error("the token that was due while the server did not run is not made")
		}
		stop()
		time.Sleep(48 * time.Hour) // no rotation runs: all expire
		r, stop = c.start(t)
		defer stop()
		newest(t, r)
	})
}

// A cluster that fails gets its token as soon as it has recovered; the previous one is
// valid meanwhile.
func TestRotationOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &sharedCluster{}
		r, stop := c.start(t)
		defer stop()
		first := newest(t, r)
		c.fail(true)
		time.Sleep(14 * time.Hour)
		synctest.Wait()
		if got := newest(t, r); got != first {
			t.Errorf("%s is handed out, which the cluster does not have", got)
		}
		c.fail(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		second := newest(t, r)
		held, minted := c.holds()
		if second == first || minted != 2 || !slices.Equal(held, []string{first, second}) {
			t.Errorf("the cluster holds %q, want %s and %s; %d were made", held, first, second, minted)
		}
	})
}

// A token that was saved before the server ended, but not created in the cluster, is
// created later. A token that was deleted in the cluster is replaced.
func TestRotationRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &sharedCluster{broken: true}
		r, stop := c.start(t)
		if tok, ok := r.Newest(); ok {
			t.Errorf("%v is handed out, which the cluster does not have", tok)
		}
		stop()
		pending := c.saved
		c.fail(false)
		r, stop = c.start(t)
		id := newest(t, r)
		if len(pending) != 1 || !pending[0].Pending || pending[0].ID != id {
			t.Errorf("kept %v, made %s", pending, id)
		}
		stop()

		// One that is not signed yet, right after it was made, is kept.
		if err := c.Delete(id); err != nil {
			t.Fatal(err)
		}
		r, stop = c.start(t)
		if same := newest(t, r); same != id {
			t.Error("a token is replaced that is not signed yet")
		}
		stop()
		time.Sleep(2 * time.Minute)
		r, stop = c.start(t)
		defer stop()
		if other := newest(t, r); other == id {
			t.Error("the token that was deleted is handed out")
		}
	})
}

func TestSharedTokenIsNotPrinted(t *testing.T) {
	tok := token.Shared{Token: token.Token{ID: "abcdef", Secret: "0123456789abcdef"}}
	if s := fmt.Sprintf("%v %s %+v %#v", tok, tok, tok, tok); strings.Contains(s, tok.Secret) {
		t.Errorf("%s shows the secret", s)
	}
}
