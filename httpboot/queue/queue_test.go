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
	return Client{Addr: netip.AddrFrom4([4]byte{10, 99, 0, 1}), Port: uint16(n), Rank: Stranger}
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

// The connections of a stranger are clients of their own, with a small share of the slots
// for each address, for all strangers, and for all that is not declared (finding H8).
func TestQueueShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 16)
		stranger := func(address, n int) Client {
			return Client{Addr: netip.AddrFrom4([4]byte{10, 99, 1, byte(address)}), Port: uint16(n), Rank: Stranger}
		}
		booting := func(n int) Client { return Client{Addr: netip.AddrFrom4([4]byte{10, 98, 0, byte(n)}), Rank: Booting} }
		one, _ := l.admitted(stranger(1, 1)), l.admitted(stranger(1, 2))
		l.waits(stranger(1, 3), 1) // an eighth of the slots for one address
		l.admitted(stranger(2, 1))
		l.admitted(stranger(3, 1))
		l.waits(stranger(4, 1), 2) // a fourth for all strangers
		for n := range 4 {
			l.admitted(booting(n))
		}
		l.waits(booting(4), 1) // half for all of them
		for n := range 8 {
			l.admitted(node(n))
		}
		l.waits(node(8), 1) // before all others
		l.waits(node(9), 2)
		l.waits(booting(4), 3)
		l.waits(stranger(1, 3), 4)
		l.Leave(one, true)
		l.admitted(node(8))
		l.waits(node(9), 1)
	})
}

// Any number of slow strangers leaves room for machines, and a line of them is behind
// machines (finding H8).
func TestQueueOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueue(t, 64)
		admitted := 0
		for address := range 100 {
			for n := range 64 {
				c := Client{Addr: netip.AddrFrom4([4]byte{10, 99, 1, byte(address)}), Port: uint16(n + 1), Rank: Stranger}
				if _, err := l.Enter(t.Context(), c, true, 0); err == nil {
					admitted++
				}
			}
		}
		if admitted != 16 || len(l.waiting) != maxStrangers*64 {
			t.Errorf("strangers have %d of 64 slots and %d wait, want 16 and %d", admitted, len(l.waiting), maxStrangers*64)
		}
		for n := range 48 {
			l.admitted(node(n))
		}
		l.waits(node(48), 1)
		if crowded, before := l.Crowded(unknown(1)); !crowded || !before {
			t.Errorf("got crowded %t, before %t; want both", crowded, before)
		}
		if crowded, before := l.Crowded(node(1)); !crowded || before {
			t.Errorf("a node: got crowded %t, before %t; want the first only", crowded, before)
		}
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
