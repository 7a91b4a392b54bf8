// Package objects follows drover's objects in a namespace of the admin cluster, and writes
// their status.
//
// A [Watcher] lists and watches the objects of all kinds, and gives them to the [Farm]
// whenever a spec changes. It writes the conditions Accepted and Ready, and the newest boot
// of each Machine; [Watcher.Warn] makes an Event. All writes of a server together are
// limited; several changes of an object become one write.
//
// The objects are declared by people, and read only. While the API server is down, the farm
// keeps what it has. The package does not know what makes an object valid (package
// config/objects does), and runs no control planes.
package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"drover/internal/printable"
	"drover/kube/client"
	"drover/kube/cluster"
	"drover/pools"
	"drover/pools/config/declared"
)

const (
	// settle is the time without changes of specs after which they are put in force: tools
	// apply many objects one after another.
	settle = 300 * time.Millisecond
	// maxSettle bounds it while changes go on.
	maxSettle = 5 * time.Second
	// maxListed bounds the list of one kind, in bytes of memory: 10 000 Machines, with what
	// kubectl notes beside their spec, take about 100 MiB while they are read.
	maxListed = 512 << 20
	// maxText bounds a text in a status or a problem, in bytes.
	maxText = 2000
	// silence is the time after which an API server that did not answer has done so since;
	// client-go tries a watch ten times before it returns an error.
	silence = time.Minute
	// maxProblems bounds the objects in [Watcher.Problems].
	maxProblems = 20
)

// Farm is the farm that objects are a part of.
type Farm interface {
	// SetObjects puts objects in force, as [drover/pools/config.Live.SetObjects].
	SetObjects([]*declared.Object) (declared.Choice, error)
	// Objects returns the newest choice.
	Objects() declared.Choice
}

// Watcher follows the objects of a namespace. All exported fields but Machine, Host and
// Changed must be set; none may change after Run has begun.
type Watcher struct {
	Cluster   *cluster.Cluster // the admin cluster
	Namespace string
	Farm      Farm
	Log       *slog.Logger
	// Machine returns the newest boot of a machine by the name of its node; nil: none has
	// a boot.
	Machine func(name string) pools.MachineStatus
	// Host returns the network of a host outside a cluster, and why its Node is not as it
	// should be; nil: an ExternalHost is Ready once it is in force.
	Host func(cluster, name string) (netip.Prefix, error)
	// Changed is called, if not nil, after other objects were put in force.
	Changed func(declared.Choice)
	Now     func() time.Time

	once  sync.Once
	wake  chan struct{} // of capacity 1: a spec has changed
	boots chan notice
	queue *queue

	mu      sync.Mutex
	seen    map[declared.Key]*seen
	listed  map[pools.ObjectKind]bool
	failed  map[pools.ObjectKind]error // of the newest list
	problem error                      // of the newest SetObjects
}

// seen is an object as the API server has it.
type seen struct {
	*declared.Object
	uid     string
	hosted  bool   // a Tenant with a control plane: Ready is its controller's, unless it is refused
	cluster string // of an ExternalHost
	status  status // of the server
}

func (w *Watcher) init() {
	w.once.Do(func() {
		w.wake = make(chan struct{}, 1)
		w.boots = make(chan notice, maxNotices)
		w.queue = newQueue()
		w.seen = map[declared.Key]*seen{}
		w.listed, w.failed = map[pools.ObjectKind]bool{}, map[pools.ObjectKind]error{}
		w.Cluster.MaxListed = maxListed
	})
}

// Run follows the objects until ctx is done.
func (w *Watcher) Run(ctx context.Context) error {
	w.init()
	ctx = cluster.Quiet(ctx)
	var running sync.WaitGroup
	for _, kind := range pools.ObjectKinds {
		running.Go(func() { w.follow(ctx, kind) })
	}
	running.Go(func() { w.apply(ctx) })
	running.Go(func() { w.write(ctx) })
	running.Go(func() { w.listen(ctx) })
	running.Wait()
	return nil
}

func resource(kind pools.ObjectKind) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: pools.ObjectGroup, Version: pools.ObjectVersion, Resource: kind.Plural()}
}

// follow lists and watches one kind.
func (w *Watcher) follow(ctx context.Context, kind pools.ObjectKind) {
	source := func(c client.Interface) cluster.Source[*unstructured.UnstructuredList] {
		d, err := cluster.DynamicOf(c)
		if err != nil {
			return cluster.Failing[*unstructured.UnstructuredList]{Err: err}
		}
		return d.Resource(resource(kind)).Namespace(w.Namespace)
	}
	cluster.Follow(ctx, w.Cluster, source, "", cluster.Handler[*unstructured.Unstructured]{
		Listed:  func(all []*unstructured.Unstructured) { w.replace(kind, all) },
		Changed: func(u *unstructured.Unstructured) { w.change(kind, u) },
		Deleted: func(u *unstructured.Unstructured) { w.remove(declared.Key{Kind: kind, Name: u.GetName()}) },
		Tried:   func(verb string, err error) { w.tried(ctx, kind, verb, err) },
	})
}

// tried notes the result of a list. The log has a new error once.
func (w *Watcher) tried(ctx context.Context, kind pools.ObjectKind, verb string, err error) {
	if ctx.Err() != nil || verb == "watch" && err == nil {
		return
	}
	unknown := apierrors.IsNotFound(err)
	if err != nil {
		err = w.explain(kind, err)
	}
	w.mu.Lock()
	before := w.failed[kind]
	w.failed[kind] = err
	if unknown && w.young(kind) {
		w.listed[kind] = true
		w.signal()
	}
	w.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		w.Log.Warn("cannot read objects: the last ones stay active", "kind", kind, "err", err)
	case err == nil && before != nil:
		w.Log.Info("objects can be read again", "kind", kind)
	}
}

// young reports whether an admin cluster may lack a kind as its CustomResourceDefinitions are
// those of an earlier version: the objects of other kinds do not wait for it.
func (w *Watcher) young(kind pools.ObjectKind) bool {
	return kind == pools.KindExternalHost && !w.listed[kind] &&
		!slices.ContainsFunc(w.Farm.Objects().InForce, func(o *declared.Object) bool { return o.Kind == kind })
}

// explain adds a remedy to an error of the API server.
func (w *Watcher) explain(kind pools.ObjectKind, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the admin cluster does not know the kind %s: apply deploy/charts/drover/crds: %w", kind, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("drover may not list and watch %s in namespace %s: docs/objects.md has the Role: %w", kind.Plural(), w.Namespace, err)
	}
	return w.Cluster.Wrap("list "+kind.Plural(), err)
}

func (w *Watcher) replace(kind pools.ObjectKind, all []*unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[declared.Key]bool{}
	for _, u := range all {
		now[declared.Key{Kind: kind, Name: u.GetName()}] = true
		w.put(kind, u)
	}
	maps.DeleteFunc(w.seen, func(k declared.Key, _ *seen) bool { return k.Kind == kind && !now[k] })
	w.listed[kind] = true
	w.signal()
}

func (w *Watcher) change(kind pools.ObjectKind, u *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.put(kind, u) {
		w.signal()
	}
}

func (w *Watcher) remove(k declared.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, k)
	w.signal()
}

// signal wakes apply. w.mu is held.
func (w *Watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// put stores an object, and reports whether its spec is another. w.mu is held.
func (w *Watcher) put(kind pools.ObjectKind, u *unstructured.Unstructured) bool {
	k := declared.Key{Kind: kind, Name: u.GetName()}
	old := w.seen[k]
	s := &seen{uid: string(u.GetUID()), status: statusOf(u)}
	w.seen[k] = s
	if old != nil && old.uid == s.uid && old.Generation == u.GetGeneration() {
		s.Object, s.hosted, s.cluster = old.Object, old.hosted, old.cluster
		if old.status.differs(s.status) || s.status.differs(old.status) { // another party has changed it, or removed it
			w.queue.add(k, 0)
		}
		return false
	}
	spec, err := json.Marshal(u.Object["spec"])
	if err != nil {
		spec = []byte("null")
	}
	_, s.hosted, _ = unstructured.NestedMap(u.Object, "spec", "controlPlane")
	s.cluster, _, _ = unstructured.NestedString(u.Object, "spec", "cluster")
	s.Object = declared.New(k, u.GetGeneration(), spec)
	return true
}

// apply puts the objects in force whenever their specs have changed, once all kinds were
// listed.
func (w *Watcher) apply(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		w.quiet(ctx)
		if desired, complete := w.desired(); complete && ctx.Err() == nil {
			w.set(desired)
		}
	}
}

// quiet waits until no spec has changed for a while.
func (w *Watcher) quiet(ctx context.Context) {
	limit := time.NewTimer(maxSettle)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-limit.C:
			return
		case <-w.wake:
		case <-time.After(settle):
			return
		}
	}
}

// desired returns the newest versions; complete is false before all kinds were listed.
func (w *Watcher) desired() (all []*declared.Object, complete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		all = append(all, s.Object)
	}
	return all, len(w.listed) == len(pools.ObjectKinds)
}

func (w *Watcher) set(desired []*declared.Object) {
	choice, err := w.Farm.SetObjects(desired)
	w.mu.Lock()
	news := err != nil && (w.problem == nil || w.problem.Error() != err.Error())
	w.problem = err
	w.mu.Unlock()
	if news {
		w.Log.Error("objects not applied, the previous ones stay active", "err", err)
	}
	if err == nil {
		w.Log.Info("objects applied", "objects", len(choice.InForce), "wrong", len(choice.Wrong), "deleted but needed", len(choice.Kept))
		if w.Changed != nil {
			w.Changed(choice)
		}
	}
	w.Refresh()
}

// Refresh compares the status of all objects with the farm in force, and writes those that
// differ.
func (w *Watcher) Refresh() {
	w.init()
	w.mu.Lock()
	keys := slices.Collect(maps.Keys(w.seen))
	w.mu.Unlock()
	for _, k := range keys {
		w.queue.add(k, 0)
	}
}

// Problems returns what is wrong with the objects, by the part: kinds that cannot be read,
// and objects that are not in force as they are.
func (w *Watcher) Problems() map[string]string {
	w.init()
	choice := w.Farm.Objects()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]string{}
	if at := w.Cluster.LastSilent(); w.now().Sub(at) < silence {
		out["admin cluster"] = "its API server does not answer, at the last try " + at.UTC().Format(time.RFC3339) + ": the last objects stay in force"
	}
	for kind, err := range w.failed {
		if err != nil {
			out["objects "+kind.Plural()] = printable.Line(err.Error(), maxText) + ": the last ones stay in force"
		}
	}
	if w.problem != nil {
		out["objects"] = printable.Line(w.problem.Error(), maxText)
	}
	listed := len(out)
	for k, errs := range choice.Wrong {
		if len(out)-listed < maxProblems {
			out["object "+k.String()] = printable.Line(cmp.Or(errs.Error(), "it is wrong"), maxText)
		}
	}
	if more := len(choice.Wrong) - maxProblems; more > 0 {
		out["objects wrong"] = fmt.Sprintf("%d more objects are wrong: their condition Accepted has the reason", more)
	}
	for _, k := range choice.Kept[:min(len(choice.Kept), maxProblems)] {
		out["object "+k.String()] = "it was deleted, and other objects or nodes need it: it stays in force until they are changed"
	}
	return out
}

// client returns the client of one resource.
func (w *Watcher) client(kind pools.ObjectKind) (dynamic.ResourceInterface, error) {
	d, err := w.Cluster.Dynamic()
	if err != nil {
		return nil, err
	}
	return d.Resource(resource(kind)).Namespace(w.Namespace), nil
}
