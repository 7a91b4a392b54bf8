package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/kube/cluster"
	"drover/pools"
)

// held counts the bytes of answers that are read and not closed, and the most of them.
type held struct {
	mu        sync.Mutex
	now, most int
}

func (h *held) add(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.most = max(h.most, h.now)
}

// page is a list of objects of 1 MiB, which arrives at 64 MiB a second. After stall bytes
// nothing more arrives until the context of the request ends.
type page struct {
	ctx         context.Context
	left, stall int
	pieces      int
	read        int
	held        *held
}

func (p *page) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	if p.stall > 0 && p.read >= p.stall {
		<-p.ctx.Done()
		return 0, p.ctx.Err()
	}
	time.Sleep(time.Millisecond)
	n := min(len(b), p.left, 64<<10) // ReadAll begins with small pieces
	copy(b, bytes.Repeat([]byte("x"), n))
	switch {
	case p.pieces == 0:
		n = copy(b, `{"items":[{"metadata":{"name":"`)
	case p.pieces%16 == 0:
		n = copy(b, `"}},{"metadata":{"name":"`)
	}
	p.pieces++
	p.left -= n
	p.read += n
	p.held.add(n)
	return n, nil
}

func (p *page) Close() error {
	p.held.add(-p.read)
	p.read = 0
	return nil
}

// lists makes a function that reads a list of so many bytes from the API server of a
// cluster.
func lists(t *testing.T, h *held, room *cluster.Room) func(size, stall int) error {
	c := cluster.New(pools.Cluster{}, "", time.Now)
	c.Room = room
	return func(size, stall int) error {
		rt := cluster.NewLimiter(c, cluster.NewBreaker(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: &page{ctx: r.Context(), left: size, stall: stall, held: h}}, nil
		})))
		resp, err := rt.RoundTrip(get(t, cluster.Listing(t.Context(), 32<<20), "https://a/api/v1/nodes"))
		if err != nil {
			return err
		}
		_, err = io.ReadAll(resp.Body)
		return errors.Join(err, resp.Body.Close())
	}
}

// TestRoom: three hostile API servers at once took 363 MB: each of their answers was within
// its limit, and they added up. Now one large page is read at a time, and after a refusal
// one large answer of all clusters that had one.
func TestRoom(t *testing.T) {
	const hostile, MiB = 5, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		h, room := new(held), cluster.NewRoom()
		var all []func(size, stall int) error
		for range hostile {
			all = append(all, lists(t, h, room))
		}
		attack := func() (most int) {
			h.most = 0
			var group sync.WaitGroup
			for _, list := range all {
				for range 3 { // at a time
					group.Go(func() {
						if err := list(1<<30, 0); err == nil {
							t.Error("a page without end was read")
						}
					})
				}
			}
			group.Wait()
			return h.most
		}
		// Each has a page of the usual size and two small ones, and one has a huge page.
		if most := attack(); most > hostile*(12+2*2+1)*MiB+20*MiB {
			t.Errorf("%d MiB at once at first", most/MiB)
		}
		time.Sleep(time.Minute) // for the rates of the clusters
		// 32 MiB in all, and small ones.
		if most := attack(); most > (32+hostile*(3*2+1))*MiB {
			t.Errorf("%d MiB at once after they were refused", most/MiB)
		}
	})
}

// TestRoomOfOthers: a list of the usual size waits for no other cluster, and a large one
// not for long, while hostile API servers hold all room.
func TestRoomOfOthers(t *testing.T) {
	const MiB = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		h, room := new(held), cluster.NewRoom()
		var group sync.WaitGroup
		end := time.Now().Add(30 * time.Second)
		for range 3 {
			list := lists(t, h, room)
			group.Go(func() {
				for time.Now().Before(end) {
					if err := list(30*MiB, 20*MiB); err == nil {
						t.Error("a page that stalls was read")
					}
				}
			})
		}
		time.Sleep(5 * time.Second) // they hold what they can
		honest := lists(t, h, room)
		for range 10 {
			start := time.Now()
			if err := honest(11*MiB, 0); err != nil {
				t.Fatalf("a page of the usual size: %v", err)
			}
			if took := time.Since(start); took > time.Second {
				t.Fatalf("a page of the usual size took %s beside hostile clusters", took)
			}
			time.Sleep(time.Second)
		}
		if err := honest(20*MiB, 0); err != nil {
			t.Errorf("a large page: %v", err)
		}
		group.Wait()
	})
}
