package httpboot

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

// The tests of the queue are inside the package: over HTTP, who comes first is
// a matter of luck.

// line is a queue under test.
type line struct {
	*queue
	t *testing.T
}

func newLine(t *testing.T, slots int) *line {
	return &line{newQueue(slots, nil), t}
}

// node is a machine that is known, by number.
func node(n int) visitor { return visitor{addr: netip.AddrFrom4([4]byte{10, 28, 0, byte(n)})} }

// stranger is a connection from one address that is no machine's.
func stranger(n int) visitor {
	return visitor{addr: netip.AddrFrom4([4]byte{10, 99, 0, 1}), port: uint16(n)}
}

// ask asks and does not wait. The place is 0 for who may fetch.
func (l *line) ask(who visitor) (pass, int) {
	l.t.Helper()
	p, err := l.enter(l.t.Context(), who, true, 0)
	var wait notYet
	if err != nil && !errors.As(err, &wait) {
		l.t.Fatalf("%v: %v", who, err)
	}
	return p, wait.place
}

func (l *line) admitted(who visitor) pass {
	l.t.Helper()
	p, place := l.ask(who)
	if place != 0 {
		l.t.Fatalf("%v has place %d, want a slot", who, place)
	}
	return p
}

func (l *line) waits(who visitor, want int) {
	l.t.Helper()
	if _, place := l.ask(who); place != want {
		l.t.Fatalf("%v has place %d, want %d", who, place, want)
	}
}

func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 2)
		one, two := l.admitted(node(1)), l.admitted(node(2))
		for n := 3; n <= 6; n++ {
			l.waits(node(n), n-2)
		}
		time.Sleep(10 * time.Second)
		for n := 6; n >= 3; n-- { // asking early, late or often moves nobody
			l.waits(node(n), n-2)
			l.waits(node(n), n-2)
		}
		l.leave(one, true)
		l.waits(node(4), 1) // the slot is kept for 3, which is not here
		three := l.admitted(node(3))
		if three.place != 1 || three.took != 10*time.Second || !three.first {
			t.Errorf("3 was at place %d and waited %v, want 1 and 10s", three.place, three.took)
		}
		l.leave(two, true)
		l.leave(three, true)
		l.admitted(node(5)) // although 4 has a slot and is not here
		l.admitted(node(4))
		l.waits(node(6), 1)
	})
}

// A request that is held begins at the moment in which a slot is free.
func TestQueueHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 1)
		one := l.admitted(node(1))
		start := time.Now()
		time.AfterFunc(3*time.Second, func() { l.leave(one, true) })
		p, err := l.enter(t.Context(), node(2), true, 4*time.Second)
		if err != nil || time.Since(start) != 3*time.Second || p.took != 3*time.Second {
			t.Errorf("got %v after %v, waited %v; want a slot after 3s", err, time.Since(start), p.took)
		}
		start = time.Now()
		if _, err := l.enter(t.Context(), node(3), true, 4*time.Second); !errors.As(err, &notYet{}) || time.Since(start) != 4*time.Second {
			t.Errorf("got %v after %v, want a place after 4s", err, time.Since(start))
		}
	})
}

func TestQueueForgetsWhoVanished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 1)
		one := l.admitted(node(1))
		l.waits(node(2), 1)
		l.waits(node(3), 2)
		time.Sleep(l.keep - time.Second)
		l.waits(node(3), 2) // 2 may still come
		time.Sleep(2 * time.Second)
		l.waits(node(3), 1)
		l.waits(node(2), 2) // too late
		l.leave(one, true)
		// 3 has the slot now, and has vanished as well.
		time.Sleep(l.keep - time.Second)
		l.waits(node(2), 1)
		time.Sleep(2 * time.Second)
		l.leave(l.admitted(node(2)), true)
		if len(l.tickets) != 0 || l.taken != 0 || len(l.line) != 0 {
			t.Errorf("%d tickets, %d slots taken, %d in the line; want none", len(l.tickets), l.taken, len(l.line))
		}
	})
}

// Who was cut off resumes in its own slot, if it comes soon.
func TestQueueKeepsSlotOfCutTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 1)
		l.leave(l.admitted(node(1)), false)
		l.waits(node(2), 1)
		time.Sleep(l.linger - time.Second)
		again := l.admitted(node(1))
		if again.first || again.took != 0 || again.place != 0 {
			t.Errorf("the resumed transfer counts as a new one: %+v", again)
		}
		l.waits(node(2), 1)
		l.leave(again, false)
		time.Sleep(l.linger + time.Second)
		l.admitted(node(2))
		l.waits(node(1), 1)
	})
}

func TestQueueOneTransferOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 2)
		one := l.admitted(node(1))
		if _, err := l.enter(t.Context(), node(1), true, time.Minute); !errors.Is(err, errFetching) {
			t.Errorf("a second transfer of the whole file: got %v, want it refused", err)
		}
		part, err := l.enter(t.Context(), node(1), false, 0)
		if err != nil {
			t.Errorf("a part beside it: %v", err)
		}
		l.admitted(node(2)) // both are one slot
		l.leave(part, true)
		l.waits(node(3), 1)
		l.leave(one, true)
		l.admitted(node(3))
	})
}

// A stranger's connections are visitors of their own, but not in all slots.
func TestQueueStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 4)
		one, _ := l.admitted(stranger(1)), l.admitted(stranger(2))
		l.waits(stranger(3), 1)
		l.admitted(node(1))
		l.waits(stranger(4), 2)
		l.admitted(node(2))
		l.waits(node(3), 3)
		l.leave(one, true)
		l.admitted(stranger(3))
		l.waits(node(3), 2)
	})
}

func TestQueueStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 1)
		l.admitted(node(1))
		time.AfterFunc(time.Second, l.stop)
		start := time.Now()
		if _, err := l.enter(t.Context(), node(2), true, time.Minute); !errors.Is(err, errStopping) || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want to be sent away after 1s", err, time.Since(start))
		}
		if _, err := l.enter(t.Context(), node(3), true, time.Minute); !errors.Is(err, errStopping) {
			t.Errorf("got %v, want to be sent away", err)
		}
	})
}

func TestQueueClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 1)
		one := l.admitted(node(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.enter(ctx, node(2), true, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		l.waits(node(3), 2) // 2 may come again
		l.leave(one, true)
		l.waits(node(3), 1)
		l.admitted(node(2))
	})
}

// A storm: everybody gets the file, nobody's place ever grows, never are there
// more transfers than slots.
func TestQueueStorm(t *testing.T) {
	const nodes, slots = 200, 7
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(slots, nil)
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
				p, err := q.enter(t.Context(), node(n), true, 4*time.Second)
				var wait notYet
				switch {
				case err == nil:
					count(1)
					time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
					count(-1)
					done := r.IntN(5) > 0 // or cut, and resumed
					q.leave(p, done)
					if done {
						return nil
					}
				case !errors.As(err, &wait):
					return err
				case wait.place > last:
					return fmt.Errorf("node %d: place %d after %d", n, wait.place, last)
				default:
					last = wait.place
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
