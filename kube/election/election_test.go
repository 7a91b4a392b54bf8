package election_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/election"
)

const (
	duration = 15 * time.Second
	deadline = 10 * time.Second
	retry    = 2 * time.Second
)

// server is an elector with a link of its own.
type server struct {
	*link
	election.Elector
	end  context.CancelFunc
	gone chan struct{} // closed when Run has returned

	mu         sync.Mutex    // guards what follows
	slow       time.Duration // that its work needs to end
	leads      bool
	terms      int
	told, done time.Time // when its last term was to end, and when it ended
}

// start starts an elector. Its only may not be another's at the same time.
func start(t *testing.T, s *store, name string, only *sync.Mutex) *server {
	ctx, end := context.WithCancel(t.Context())
	v := &server{link: &link{store: s}, end: end, gone: make(chan struct{})}
	v.Elector = election.Elector{
		Leases: func() election.Leases { return v.link }, Name: "leader", Identity: name,
		Duration: duration, Deadline: deadline, Retry: retry,
		Lead: func(ctx context.Context) {
			if !only.TryLock() {
				t.Errorf("%s leads, and another does too", name)
				return
			}
			v.set(func() { v.leads = true; v.terms++ })
			<-ctx.Done()
			var slow time.Duration
			v.set(func() { v.told = time.Now(); slow = v.slow })
			time.Sleep(slow)
			v.set(func() { v.leads = false; v.done = time.Now() })
			only.Unlock()
		},
	}
	go func() {
		defer close(v.gone)
		if err := v.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	return v
}

func (v *server) set(do func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	do()
}

func (v *server) leading() (leads bool) {
	v.set(func() { leads = v.leads })
	return leads
}

// led is how many terms it has had.
func (v *server) led() (terms int) {
	v.set(func() { terms = v.terms })
	return terms
}

// lastTold is when its last term was to end.
func (v *server) lastTold() (at time.Time) {
	v.set(func() { at = v.told })
	return at
}

// stop ends an elector, and waits for its end.
func (v *server) stop() {
	v.end()
	<-v.gone
}

// pair runs f with a leader and an elector that waits.
func pair(t *testing.T, f func(s *store, leader, other *server)) {
	synctest.Test(t, func(t *testing.T) {
		s, only := &store{}, new(sync.Mutex)
		a, b := start(t, s, "a", only), start(t, s, "b", only)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !a.leading() || b.leading() || *s.now().Spec.HolderIdentity != "a" {
			t.Fatalf("a leads: %v, b: %v, want a, which came first", a.leading(), b.leading())
		}
		f(s, a, b)
		a.stop()
		b.stop()
	})
}

// after waits, and returns after all that happens at that time.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestRelease: the leader gives the Lease back when its work has ended, and the next one
// leads as soon as it asks.
func TestRelease(t *testing.T) {
	pair(t, func(s *store, a, b *server) {
		const slow = 40 * time.Second // longer than the Lease is good for
		a.set(func() { a.slow = slow })
		a.end()
		after(slow - time.Second)
		if !a.leading() || b.leading() {
			t.Errorf("while the leader ends: a leads: %v, b: %v", a.leading(), b.leading())
		}
		<-a.gone
		after(2 * retry)
		if !b.leading() {
			t.Error("b does not lead after a has ended")
		}
		if want := []string{"a", "", "b"}; !slices.Equal(s.holders, want) {
			t.Errorf("holders %q, want %q", s.holders, want)
		}
		if l := s.now(); *l.Spec.LeaseTransitions != 1 || *l.Spec.LeaseDurationSeconds != 15 || l.Spec.AcquireTime.IsZero() {
			t.Errorf("Lease of b: %+v", l.Spec)
		}
	})
}

// TestOutage: a leader whose requests fail ends by the deadline, and the other waits for
// longer than that.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name string
		lag  time.Duration // of answers before the outage
		cut  func(*link)
	}{
		{"no request arrives", 0, func(l *link) { l.down = true }},
		{"no answer arrives", 0, func(l *link) { l.lostAnswers = true }},
		{"answers come too late", 0, func(l *link) { l.answer = 2 * deadline }},
		{"answers were late before", 4 * time.Second, func(l *link) { l.down = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			pair(t, func(_ *store, a, b *server) {
				a.link.set(func() { a.answer = c.lag })
				after(time.Minute)
				var last time.Time // that a sent a renewal that it knows to be good
				a.link.set(func() { last = a.beginsWrites[len(a.beginsWrites)-1]; c.cut(a.link) })
				a.set(func() { a.slow = duration - deadline - time.Second })
				for !b.leading() {
					after(time.Second)
				}
				if told := a.lastTold().Sub(last); told != deadline {
					t.Errorf("a was told to end %s after its last good renewal, want %s", told, deadline)
				}
				if a.leading() || time.Since(last) < duration {
					t.Errorf("b leads %s after a's last good renewal, want %s at least", time.Since(last), duration)
				}
				a.link.set(func() { a.down, a.lostAnswers, a.answer = false, false, 0 })
				after(time.Minute)
				if a.leading() || !b.leading() {
					t.Error("a took the Lease that b renews")
				}
			})
		})
	}
}

// TestShortOutage: the leader stays the leader while there is time for another try.
func TestShortOutage(t *testing.T) {
	pair(t, func(_ *store, a, b *server) {
		a.link.set(func() { a.down = true })
		after(deadline / 2)
		a.link.set(func() { a.down = false })
		after(time.Minute)
		if !a.leading() || a.led() != 1 || b.led() != 0 {
			t.Errorf("terms of a: %d, of b: %d, want 1 and none", a.led(), b.led())
		}
	})
}

// TestForeignClock: the times in a Lease are of another clock, and are not read. It is
// taken when it has not changed for as long as it says that it is good for.
func TestForeignClock(t *testing.T) {
	for _, skew := range []time.Duration{-24 * time.Hour, 0, 24 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				renew := func() {
					s.edit(func(l *coordinationv1.Lease) {
						who, seconds, at := "foreign", int32(30), metav1.NewMicroTime(time.Now().Add(skew))
						l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &who, &seconds, &at
					})
				}
				renew()
				a := start(t, s, "a", new(sync.Mutex))
				for range 5 {
					after(20 * time.Second)
					renew()
				}
				after(30*time.Second - time.Millisecond)
				if a.led() != 0 {
					t.Error("a took a Lease that was renewed")
				}
				after(4 * retry) // to see the last renewal, and then its end
				if !a.leading() {
					t.Error("a does not lead after the end of the Lease")
				}
				a.stop()
			})
		})
	}
}

// TestEdited: an administrator can delete the Lease, or give it to another.
func TestEdited(t *testing.T) {
	pair(t, func(s *store, a, b *server) {
		b.stop() // else it could be first
		s.edit(nil)
		after(2 * retry)
		if !a.leading() || a.led() != 1 || *s.now().Spec.HolderIdentity != "a" {
			t.Error("a did not make the Lease again")
		}
		s.edit(func(l *coordinationv1.Lease) { who := "c"; l.Spec.HolderIdentity = &who })
		after(retry)
		if a.leading() || *s.now().Spec.HolderIdentity != "c" {
			t.Error("a leads though the Lease is another's")
		}
	})
}

// TestNeverTwo: whatever the links do, there is one leader at most, and there is one again
// when they work.
func TestNeverTwo(t *testing.T) {
	terms := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s, only, all := &store{}, new(sync.Mutex), []*server{}
			for i := range 3 {
				v := start(t, s, strconv.Itoa(i), only)
				slow := time.Duration(random.Int64N(int64(duration - deadline)))
				v.set(func() { v.slow = slow })
				all = append(all, v)
			}
			for range 300 {
				v := all[random.IntN(len(all))]
				v.link.set(func() {
					v.down, v.lostAnswers = random.IntN(4) == 0, random.IntN(6) == 0
					v.ask, v.answer = time.Duration(random.Int64N(int64(7*time.Second))), time.Duration(random.Int64N(int64(7*time.Second)))
				})
				after(time.Duration(random.Int64N(int64(20 * time.Second))))
			}
			for _, v := range all {
				v.link.set(func() { v.down, v.lostAnswers, v.ask, v.answer = false, false, 0, 0 })
				v.set(func() { terms += v.terms })
			}
			after(2 * time.Minute)
			if !slices.ContainsFunc(all, (*server).leading) {
				t.Errorf("seed %d: nobody leads at the end", seed)
			}
			for _, v := range all {
				v.stop()
			}
			after(time.Minute) // requests under way
		})
	}
	if terms < 100 {
		t.Errorf("%d terms are too few to show anything", terms)
	}
}

// TestFields: times with which two could lead are refused.
func TestFields(t *testing.T) {
	good := election.Elector{Identity: "a", Duration: duration, Deadline: deadline, Retry: retry}
	for name, spoil := range map[string]func(*election.Elector){
		"no identity":    func(e *election.Elector) { e.Identity = "" },
		"late deadline":  func(e *election.Elector) { e.Deadline = duration },
		"one try at all": func(e *election.Elector) { e.Retry = deadline },
		"no pause":       func(e *election.Elector) { e.Retry = 0 },
	} {
		e := good
		spoil(&e)
		if e.Run(t.Context()) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
