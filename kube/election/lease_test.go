package election_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// store is an API server with one Lease: it refuses updates of what has changed since.
type store struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	holders []string // each one as it came
}

func (s *store) write(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	s.lease = l.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.version)
	if n := len(s.holders); n == 0 || s.holders[n-1] != *l.Spec.HolderIdentity {
		s.holders = append(s.holders, *l.Spec.HolderIdentity)
	}
	return s.lease.DeepCopy()
}

func (s *store) now() *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.DeepCopy()
}

// edit changes the Lease as an administrator does. A nil do deletes it.
func (s *store) edit(do func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if do == nil {
		s.lease = nil
		return
	}
	l := s.lease.DeepCopy()
	if l == nil {
		l = &coordinationv1.Lease{}
	}
	do(l)
	s.write(l)
}

var errDown = errors.New("the link is down")

// link is an elector's way to the store.
type link struct {
	*store
	mu           sync.Mutex
	down         bool          // requests do not arrive
	ask, answer  time.Duration // that they need each way
	lostAnswers  bool          // requests arrive, and their answers do not
	beginsWrites []time.Time
}

func (l *link) set(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// pass does a request with the state of the link at its begin.
func (l *link) pass(ctx context.Context, do func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	down, ask, answer, lost := l.down, l.ask, l.answer, l.lostAnswers
	l.mu.Unlock()
	if down {
		<-ctx.Done()
		return nil, errDown
	}
	// What is sent arrives, though the client may not wait for it.
	type result struct {
		lease *coordinationv1.Lease
		err   error
	}
	done := make(chan result, 1)
	go func() {
		time.Sleep(ask)
		l.store.mu.Lock()
		got, err := do()
		l.store.mu.Unlock()
		time.Sleep(answer)
		if !lost {
			done <- result{got, err}
		}
	}()
	select {
	case r := <-done:
		return r.lease, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *link) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.pass(ctx, func() (*coordinationv1.Lease, error) {
		if l.lease == nil {
			return nil, apierrors.NewNotFound(leases, name)
		}
		return l.lease.DeepCopy(), nil
	})
}

func (l *link) Create(ctx context.Context, made *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.pass(ctx, func() (*coordinationv1.Lease, error) {
		if l.lease != nil {
			return nil, apierrors.NewAlreadyExists(leases, made.Name)
		}
		return l.write(made), nil
	})
}

func (l *link) Update(ctx context.Context, changed *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.set(func() { l.beginsWrites = append(l.beginsWrites, time.Now()) })
	return l.pass(ctx, func() (*coordinationv1.Lease, error) {
		switch {
		case l.lease == nil:
			return nil, apierrors.NewNotFound(leases, changed.Name)
		case l.lease.ResourceVersion != changed.ResourceVersion:
			return nil, apierrors.NewConflict(leases, changed.Name, errors.New("it has changed"))
		}
		return l.write(changed), nil
	})
}
