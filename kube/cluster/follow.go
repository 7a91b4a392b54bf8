package cluster

import (
	"cmp"
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"drover/kube/client"
)

// Source lists and watches one kind of object; the typed clients of client-go
// are Sources.
type Source[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// Failing is a [Source] that only returns an error.
type Failing[L runtime.Object] struct{ Err error }

// List implements [Source].
func (f Failing[L]) List(context.Context, metav1.ListOptions) (none L, err error) { return none, f.Err }

// Watch implements [Source].
func (f Failing[L]) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, f.Err
}

// Handler receives the objects that [Follow] lists and watches. Only one of its
// functions runs at a time, except for Tried.
type Handler[T runtime.Object] struct {
	// Listed receives all objects, at the start and whenever a watch could not be
	// continued.
	Listed func(all []T)
	// Changed receives each object that was added or changed later.
	Changed func(T)
	// Deleted receives each object that was deleted. It may be nil.
	Deleted func(T)
	// Tried receives the result of each list, and the error of each watch that the
	// API server refused. Follow tries again automatically. The verb is "list" or
	// "watch".
	Tried func(verb string, err error)
}

// Follow lists and watches the objects that a field selector selects, with a Reflector
// of client-go, until ctx is done. It stores no objects. It tries again 1 to 30 seconds
// after an error, as of a list that exceeds the limits of answers. When the credentials
// of the cluster change, it lists all objects again.
func Follow[T, L runtime.Object](ctx context.Context, c *Cluster, source func(client.Interface) Source[L], fields string, h Handler[T]) {
	var listed client.Interface
	limit := cmp.Or(c.MaxListed, maxListed)
	if strings.HasPrefix(fields, "metadata.name=") {
		limit = maxNamed
	}
	var all *listing
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			now := c.Client()
			opts.FieldSelector = fields
			if opts.Continue == "" {
				opts.ResourceVersion = "" // the newest state, not that of a cache
				all = &listing{left: limit}
			}
			list, err := page(ctx, c, source(now), opts, all)
			listed = now
			h.Tried("list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			now := c.Client()
			if now != listed {
				return nil, apierrors.NewResourceExpired("the credentials have changed")
			}
			opts.FieldSelector = fields
			w, err := source(now).Watch(ctx, opts)
			if err != nil {
				h.Tried("watch", err)
				return nil, apierrors.NewResourceExpired(err.Error()) // so that the Reflector lists next
			}
			return w, nil
		},
	}
	reflector := cache.NewReflectorWithOptions(pollingList{lw}, nil, store[T]{h}, cache.ReflectorOptions{})
	reflector.WatchListPageSize = pageSize // else it asks for all objects at once
	reflector.RunWithContext(Quiet(ctx))
}

// pollingList makes a Reflector begin with a list: API servers before 1.34 do not
// stream lists.
type pollingList struct{ *cache.ListWatch }

func (pollingList) IsWatchListSemanticsUnSupported() bool { return true }

// store passes objects to a Handler where a Reflector would store them.
type store[T runtime.Object] struct{ Handler[T] }

func (s store[T]) Add(o any) error    { s.Changed(o.(T)); return nil }
func (s store[T]) Update(o any) error { s.Changed(o.(T)); return nil }
func (s store[T]) Resync() error      { return nil }

func (s store[T]) Delete(o any) error {
	if s.Deleted != nil {
		s.Deleted(o.(T))
	}
	return nil
}

func (s store[T]) Replace(objects []any, _ string) error {
	all := make([]T, len(objects))
	for i, o := range objects {
		all[i] = o.(T)
	}
	s.Listed(all)
	return nil
}
