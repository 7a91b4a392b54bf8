package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The tests are inside the package to see that no ticket is left over.

// queue is a queue under test.
type queue struct {
	*Queue
	t *testing.T
}

func newQueue(t *testing.T, slots int) *queue {
	return &queue{New(slots, nil), t}
}

// node is a machine that is known, by number.
func node(n int) Client { return Client{Addr: netip.AddrFrom4([4]byte{10, 28, 0, byte(n)})} }

// unknown is a connection from one address of no machine.
func unknown(n int) Client {
	return Client{Addr: netip.AddrFrom4([4]byte{10, 99, 0, 1}), Port: uint16(n)}
}

// ask asks and does not wait. The position is 0 for a client that may download.
func (l *queue) ask(c Client) (Turn, int) {
	l.t.Helper()
	p, err := l.Enter(l.t.Context(), c, true, 0)
	var wait WaitError
	if err != nil && !errors.As(err, &wait) {
		l.t.Fatalf("%v: %v", c, err)
	}
	return p, wait.Position
}

func (l *queue) admitted(c Client) Turn {
	l.t.Helper()
	p, place := l.ask(c)
	if place != 0 {
		l.t.Fatalf("%v has position %d, want a slot", c, place)
	}
	return p
}

func (l *queue) waits(c Client, want int) {
	l.t.Helper()
	if _, place := l.ask(c); place != want {
		l.t.Fatalf("%v has position %d, want %d", c, place, want)
	}
}

func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 2)
		one, two := l.admitted(node(1)), l.admitted(node(2))
		for n := 3; n <= 6; n++ {
			l.waits(node(n), n-2)
		}
		time.Sleep(10 * time.Second)
		for n := 6; n >= 3; n-- { // asking early, late or often changes no position
			l.waits(node(n), n-2)
			l.waits(node(n), n-2)
		}
		l.Leave(one, true)
		l.waits(node(4), 1) // the slot is kept for 3, which is not here
		three := l.admitted(node(3))
		if three.Position != 1 || three.Waited != 10*time.Second || !three.First {
			t.Errorf("3 was at position %d and waited %v, want 1 and 10s", three.Position, three.Waited)
		}
		l.Leave(two, true)
		l.Leave(three, true)
		l.admitted(node(5)) // although 4 has a slot and is not here
		l.admitted(node(4))
		l.waits(node(6), 1)
	})
}

// A request that is held begins at the moment when a slot becomes free.
func TestQueueHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 1)
		one := l.admitted(node(1))
		start := time.Now()
		time.AfterFunc(3*time.Second, func() { l.Leave(one, true) })
		p, err := l.Enter(t.Context(), node(2), true, 4*time.Second)
		if err != nil || time.Since(start) != 3*time.Second || p.Waited != 3*time.Second {
			t.Errorf("got %v after %v, waited %v; want a slot after 3s", err, time.Since(start), p.Waited)
		}
		start = time.Now()
		if _, err := l.Enter(t.Context(), node(3), true, 4*time.Second); !errors.As(err, &WaitError{}) || time.Since(start) != 4*time.Second {
			t.Errorf("got %v after %v, want a position after 4s", err, time.Since(start))
		}
	})
}

func TestQueueForgetsAbsentClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 1)
		one := l.admitted(node(1))
		l.waits(node(2), 1)
		l.waits(node(3), 2)
		time.Sleep(ticketTime - time.Second)
		l.waits(node(3), 2) // 2 may still come
		time.Sleep(2 * time.Second)
		l.waits(node(3), 1)
		l.waits(node(2), 2) // too late
		l.Leave(one, true)
		// 3 has the slot now, and has vanished as well.
		time.Sleep(ticketTime - time.Second)
		l.waits(node(2), 1)
		time.Sleep(2 * time.Second)
		l.Leave(l.admitted(node(2)), true)
		if len(l.tickets) != 0 || l.taken != 0 || len(l.waiting) != 0 {
			t.Errorf("%d tickets, %d slots taken, %d waiting; want none", len(l.tickets), l.taken, len(l.waiting))
		}
	})
}

// A client that was cut off resumes in its own slot, if it comes soon.
func TestQueueKeepsSlotOfCutTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 1)
		l.Leave(l.admitted(node(1)), false)
		l.waits(node(2), 1)
		time.Sleep(resumeTime - time.Second)
		again := l.admitted(node(1))
		if again.First || again.Waited != 0 || again.Position != 0 {
			t.Errorf("the resumed transfer counts as a new one: %+v", again)
		}
		l.waits(node(2), 1)
		l.Leave(again, false)
		time.Sleep(resumeTime + time.Second)
		l.admitted(node(2))
		l.waits(node(1), 1)
	})
}

func TestQueueOneTransferOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 2)
		one := l.admitted(node(1))
		if _, err := l.Enter(t.Context(), node(1), true, time.Minute); !errors.Is(err, ErrTwice) {
			t.Errorf("a second transfer of the whole file: got %v, want it refused", err)
		}
		part, err := l.Enter(t.Context(), node(1), false, 0)
		if err != nil {
			t.Errorf("a part beside it: %v", err)
		}
		l.admitted(node(2)) // both are one slot
		l.Leave(part, true)
		l.waits(node(3), 1)
		l.Leave(one, true)
		l.admitted(node(3))
	})
}

// The connections of an unknown address are clients of their own, but do not
// get all slots.
func TestQueueUnknownClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 4)
		one, _ := l.admitted(unknown(1)), l.admitted(unknown(2))
		l.waits(unknown(3), 1)
		l.admitted(node(1))
		l.waits(unknown(4), 2)
		l.admitted(node(2))
		l.waits(node(3), 3)
		l.Leave(one, true)
		l.admitted(unknown(3))
		l.waits(node(3), 2)
	})
}

func TestQueueStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 1)
		l.admitted(node(1))
		time.AfterFunc(time.Second, l.Stop)
		start := time.Now()
		if _, err := l.Enter(t.Context(), node(2), true, time.Minute); !errors.Is(err, ErrStopped) || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want to be sent away after 1s", err, time.Since(start))
		}
		if _, err := l.Enter(t.Context(), node(3), true, time.Minute); !errors.Is(err, ErrStopped) {
			t.Errorf("got %v, want to be sent away", err)
		}
	})
}

func TestQueueClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 1)
		one := l.admitted(node(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Enter(ctx, node(2), true, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		l.waits(node(3), 2) // 2 may come again
		l.Leave(one, true)
		l.waits(node(3), 1)
		l.admitted(node(2))
	})
}

// A storm: all clients get the file, no position ever grows, and there are never
// more transfers than slots.
func TestQueueStorm(t *testing.T) {
	const nodes, slots = 200, 7
	synctest.Test(t, func(t *testing.T) {
		q := New(slots, nil)
		var mu sync.Mutex
		running, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		fetch := func(n int, r *rand.Rand) error {
			last := nodes
			for {
				p, err := q.Enter(t.Context(), node(n), true, 4*time.Second)
				var wait WaitError
				switch {
				case err == nil:
					count(1)
					time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
					count(-1)
					done := r.IntN(5) > 0 // or cut, and resumed
					q.Leave(p, done)
					if done {
						return nil
					}
				case !errors.As(err, &wait):
					return err
				case wait.Position > last:
					return fmt.Errorf("node %d: position %d after %d", n, wait.Position, last)
				default:
					last = wait.Position
					time.Sleep(time.Second)
				}
			}
		}
		var all sync.WaitGroup
		for n := range nodes {
			all.Go(func() {
				if err := fetch(n, rand.New(rand.NewPCG(1, uint64(n)))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most != slots {
			t.Errorf("%d transfers at a time, want %d", most, slots)
		}
		if q.taken != 0 || len(q.tickets) != 0 {
			t.Errorf("%d slots are taken and %d tickets left, want none", q.taken, len(q.tickets))
		}
	})
}
