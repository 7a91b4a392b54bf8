// Package election makes one of several servers the leader, by a Lease of Kubernetes.
//
// [Elector.Run] campaigns, leads while it can renew the Lease, and campaigns again. No two
// electors lead at a time, as long as their clocks run at the same rate; they need not show
// the same time. Nobody reads the times in a Lease: an elector takes the Lease only if it
// has not seen it change for as long as it was good for, by its own clock. The leader counts
// from the moment before it sent its last good renewal, and ends earlier, see [Elector.Deadline].
//
// The Leases are those of client-go's package leaderelection, so a server with one and a
// server with the other make way for each other.
//
// The package knows neither credentials nor the work of the leader.
package election

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/internal/wait"
)

// Leases are the Leases of a namespace.
type Leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, l *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, l *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Elector is one of several that want to lead. Its fields must not change after Run.
type Elector struct {
	// Leases returns the client for the next request. It is called from one goroutine at a time.
	Leases func() Leases
	// Name is the Lease.
	Name string
	// Identity names this elector; no two have the same.
	Identity string
	// Duration is how long others wait after a renewal before they take the Lease, in
	// whole seconds.
	Duration time.Duration
	// Deadline is how long the leader leads after it sent its last good renewal. It is
	// less than Duration by the time that Lead needs to end.
	Deadline time.Duration
	// Retry is the time from one renewal to the next.
	Retry time.Duration
	// Lead does the work of the leader until its context is done. It is not called again
	// before it has returned.
	Lead func(ctx context.Context)
	// Tried is called, if not nil, with the result of each try to get or to renew the Lease.
	// That another elector has the Lease, or was faster, is no error.
	Tried func(ctx context.Context, err error)

	seen   *coordinationv1.Lease // as it was read or written last; nil: there was none
	seenAt time.Time             // when it was first seen so
	began  time.Time             // when the last good renewal was sent
}

// Run campaigns and leads until ctx is done. Lead has ended and the Lease is given back, if
// that was possible, when Run returns. The error is one of the fields.
func (e *Elector) Run(ctx context.Context) error {
	switch {
	case e.Identity == "":
		return errors.New("an elector has no identity")
	case e.Retry <= 0 || e.Deadline < 2*e.Retry || e.Duration <= e.Deadline:
		return errors.New("an elector's times do not fit together")
	}
	for ctx.Err() == nil {
		if held, _ := e.try(ctx); held {
			e.lead(ctx)
		}
		// Electors that were refused at the same time try at different times.
		_ = wait.Sleep(ctx, e.Retry+rand.N(e.Retry))
	}
	return nil
}

// lead runs Lead, and renews the Lease until that has ended: a Lead that takes its time
// after ctx is done is still the only one.
func (e *Elector) lead(ctx context.Context) {
	leading, stop := context.WithCancel(ctx)
	running, ended := context.WithCancel(context.WithoutCancel(ctx))
	// A timer, so that no request can hold up the end.
	deadline := time.AfterFunc(time.Until(e.began.Add(e.Deadline)), stop)
	go func() {
		defer ended()
		e.Lead(leading)
	}()
	// From one sending to the next: answers that are late cost no try.
	for sent := e.began; wait.Sleep(running, time.Until(sent.Add(e.Retry))) == nil; {
		sent = time.Now()
		held, err := e.try(running)
		switch {
		case held:
			deadline.Reset(time.Until(e.began.Add(e.Deadline)))
		case err == nil: // another has it
			stop()
		}
	}
	deadline.Stop()
	stop()
	e.release(context.WithoutCancel(ctx))
}

// try gets or renews the Lease. It returns false without an error if another elector has
// the Lease. After an error an elector that has the Lease still has it until the deadline.
func (e *Elector) try(ctx context.Context) (held bool, err error) {
	limited, cancel := context.WithTimeout(ctx, e.Deadline/2) // so that there are two before the deadline
	defer cancel()
	held, err = e.attempt(limited)
	if e.Tried != nil {
		reported := err
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			reported = nil
		}
		e.Tried(ctx, reported)
	}
	return held, err
}

func (e *Elector) attempt(ctx context.Context) (held bool, err error) {
	began := time.Now()
	if e.holds() {
		if err := e.write(ctx, began, e.seen); err == nil {
			return true, nil
		}
	}
	leases := e.Leases()
	found, err := leases.Get(ctx, e.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
		e.take(made)
		if made, err = leases.Create(ctx, made, metav1.CreateOptions{}); err == nil {
			e.see(made)
			e.began = began
		}
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	e.see(found)
	if !e.holds() && !e.free() {
		return false, nil
	}
	err = e.write(ctx, began, found)
	return err == nil, err
}

// write takes or renews a Lease as it was read.
func (e *Elector) write(ctx context.Context, began time.Time, l *coordinationv1.Lease) error {
	l = l.DeepCopy()
	e.take(l)
	written, err := e.Leases().Update(ctx, l, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	e.see(written)
	e.began = began
	return nil
}

// take makes this elector the holder of a Lease.
func (e *Elector) take(l *coordinationv1.Lease) {
	now, seconds, s := metav1.NowMicro(), int32(e.Duration/time.Second), &l.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity != e.Identity {
		transitions := int32(0)
		if s.LeaseTransitions != nil {
			transitions = *s.LeaseTransitions
		}
		if s.HolderIdentity != nil {
			transitions++
		}
		s.HolderIdentity, s.AcquireTime, s.LeaseTransitions = &e.Identity, &now, &transitions
	}
	s.RenewTime, s.LeaseDurationSeconds = &now, &seconds
}

// see notes a Lease, and since when it is so.
func (e *Elector) see(l *coordinationv1.Lease) {
	if e.seen == nil || !reflect.DeepEqual(l.Spec, e.seen.Spec) {
		e.seenAt = time.Now()
	}
	e.seen = l
}

// holds reports whether this elector is the holder of the Lease that it has seen.
func (e *Elector) holds() bool {
	return e.seen != nil && e.seen.Spec.HolderIdentity != nil && *e.seen.Spec.HolderIdentity == e.Identity
}

// free reports whether the Lease that this elector has seen may be taken.
func (e *Elector) free() bool {
	s := e.seen.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" {
		return true
	}
	good := e.Duration
	if s.LeaseDurationSeconds != nil {
		good = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	return time.Since(e.seenAt) >= good
}

// release gives the Lease back, if this elector has it. Lead has ended.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Deadline/2)
	defer cancel()
	for range 3 { // a renewal that was broken off may come between
		found, err := e.Leases().Get(ctx, e.Name, metav1.GetOptions{})
		if err != nil {
			return // others take it after its duration
		}
		e.see(found)
		if !e.holds() {
			return
		}
		l := found.DeepCopy()
		now, nobody, second := metav1.NowMicro(), "", int32(1)
		l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.AcquireTime, l.Spec.LeaseDurationSeconds = &nobody, &now, &now, &second
		written, err := e.Leases().Update(ctx, l, metav1.UpdateOptions{})
		if err == nil {
			e.see(written)
		}
		if !apierrors.IsConflict(err) {
			return
		}
	}
}
