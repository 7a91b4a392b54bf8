package hosted_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"drover/e2e/fixture"
	kubecluster "drover/kube/cluster"
	"drover/kube/objects"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/declared"
)

// noNodes is a store without nodes.
type noNodes struct{}

func (noNodes) Nodes() ([]pools.PoolNode, error)             { return nil, nil }
func (noNodes) ChangeNodes([]pools.PoolNode, []string) error { return nil }

// followObjects gives the objects in force to the controller, as drover serve does.
func (f *farm) followObjects() {
	key := func(tenant string) declared.Key {
		return declared.Key{Kind: pools.KindTenant, Name: tenant}
	}
	f.controller.Generation = func(tenant string) int64 {
		if o := f.live.Objects().Find(key(tenant)); o != nil {
			return o.Generation
		}
		return 0
	}
	f.controller.Refused = func(tenant string) bool {
		_, wrong := f.live.Objects().Wrong[key(tenant)]
		return wrong
	}
}

// watchObjects has the tenants that objects declare in force until stop is called.
func (f *farm) watchObjects(t *testing.T) (stop func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "drover.yaml")
	const text = "server: {interfaces: [lo], address: 10.28.0.2, objects: {namespace: farm}}\nsubnets: [{cidr: 10.28.0.0/16}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := config.NewLive(config.Source{File: file}, noNodes{})
	if err != nil {
		t.Fatal(err)
	}
	f.stop()
	f.live = live
	f.start()
	w := &objects.Watcher{
		Cluster: kubecluster.NewAdmin(f.admin.Admin, time.Now), Namespace: namespace, Farm: live, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Changed: func(declared.Choice) { f.controller.Set(live.Farm().Clusters()) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
		f.stop()
		f.live = nil
	}
}

// state is what tools that deploy read of an object.
type state struct {
	generation, observed int64
	ready                metav1.Condition // zero: there is none
}

func (s state) String() string {
	return fmt.Sprintf("generation %d, observed %d, Ready=%s %s of %d: %s", s.generation, s.observed, s.ready.Status, s.ready.Reason, s.ready.ObservedGeneration, s.ready.Message)
}

// healthy reports whether Argo CD, with the check of docs/gitops.md, or the rules of kstatus
// take an object for one that is as declared: to kstatus it is that without Ready, too.
func (s state) healthy() bool {
	return s.observed == s.generation && (s.ready.Status == "" || s.ready.Status == metav1.ConditionTrue)
}

func stateOf(t *testing.T, o runtime.Object) (s state) {
	u := o.(*unstructured.Unstructured)
	s.generation = u.GetGeneration()
	s.observed, _, _ = unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	var object struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &object); err != nil {
		t.Error(err)
	}
	for _, c := range object.Status.Conditions {
		if c.Type == "Ready" {
			s.ready = c
		}
	}
	return s
}

// states are all states of an object.
type states struct {
	mu  sync.Mutex
	all []state
}

func (s *states) list() []state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// follow notes all states of a tenant's object from now on.
func (f *farm) follow(t *testing.T, tenant string) *states {
	t.Helper()
	tenants := dynamic.NewForConfigOrDie(f.load(f.admin.Admin)).Resource(schema.GroupVersionResource{Group: "drover.dev", Version: "v1alpha1", Resource: "tenants"}).Namespace(namespace)
	changes, err := tenants.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + tenant})
	if err != nil {
		t.Fatal(err)
	}
	s := &states{}
	var running sync.WaitGroup
	running.Go(func() {
		for e := range changes.ResultChan() {
			if e.Type == watch.Added || e.Type == watch.Modified {
				now := stateOf(t, e.Object)
				s.mu.Lock()
				s.all = append(s.all, now)
				s.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		changes.Stop()
		running.Wait()
	})
	return s
}

// until waits for a state.
func (s *states) until(t *testing.T, what string, reached func(state) bool) state {
	t.Helper()
	var last state
	fixture.Retry(t, what, func() error {
		if all := s.list(); len(all) > 0 {
			last = all[len(all)-1]
		}
		if !reached(last) {
			return fmt.Errorf("it is %s", last)
		}
		return nil
	})
	return last
}

// testRefused: while the newest spec of a hosted tenant is refused, its Ready is False and has
// the reason, whatever its controller sees, and no tool that deploys takes it for healthy.
// The controller has Ready before and afterwards.
func (f *farm) testRefused(t *testing.T) {
	stop := f.watchObjects(t)
	defer func() {
		stop()
		if _, err := f.admin.Kubectl(t.Context(), nil, "delete", "tenants.drover.dev", "--all", "-n", namespace); err != nil {
			t.Error(err)
		}
		f.start()
		f.controller.Set([]pools.Cluster{cluster("tenant-a")})
		f.ready("tenant-a", version)
	}()
	declare := func(tenant, names string) {
		t.Helper()
		address := address
		if tenant != "tenant-a" {
			address = otherAddress
		}
		object := fmt.Sprintf(`{apiVersion: drover.dev/v1alpha1, kind: Tenant, metadata: {name: %s, namespace: %s},
spec: {controlPlane: {version: %s, endpoint: {address: %s}, certSANs: [%s]}}}`, tenant, namespace, version, address, names)
		if _, err := f.admin.Kubectl(t.Context(), strings.NewReader(object), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	a, b := f.follow(t, "tenant-a"), f.follow(t, "refused")
	declare("tenant-a", "")
	a.until(t, "the tenant is Ready", func(s state) bool { return s.healthy() && s.ready.Reason == "Ready" })

	declare("tenant-a", "no_name!")
	refused := func(generation int64, words string) func(state) bool {
		return func(s state) bool {
			return s.generation == generation && s.observed == generation && s.ready.Status == metav1.ConditionFalse && strings.Contains(s.ready.Message, words)
		}
	}
	s := a.until(t, "the edit is refused", refused(2, `"no_name!" is neither a host name nor an address`))
	if s.ready.Reason != "LastGoodInForce" || !strings.Contains(s.ready.Message, "Generation 1 stays in force.") {
		t.Errorf("refused with %s", s)
	}
	f.stop()
	f.start() // another server leads: it writes the whole status at once
	f.controller.Set(f.live.Farm().Clusters())
	fixture.Retry(t, "the controller leaves Ready alone", func() error {
		owned, err := f.admin.Kubectl(t.Context(), nil, "get", "tenants.drover.dev", "tenant-a", "-n", namespace, "--show-managed-fields", "-o", `jsonpath={.metadata.managedFields[?(@.manager=="drover-tenants")].fieldsV1}`)
		if err == nil && (!strings.Contains(owned, "Available") || strings.Contains(owned, `\"Ready\"`)) {
			err = fmt.Errorf("it owns %s", owned)
		}
		return err
	})

	declare("refused", "no_name!")
	if s := b.until(t, "a new tenant is refused", refused(1, "neither a host name nor an address")); s.ready.Reason != "Invalid" {
		t.Errorf("refused with %s", s)
	}

	declare("tenant-a", "name.example.org")
	a.until(t, "the tenant is Ready again", func(s state) bool { return s.generation == 3 && s.healthy() && s.ready.Reason == "Ready" })
	changes := 0
	for i, s := range a.list() {
		if s.generation == 2 && s.healthy() || s.generation == 3 && s.healthy() && s.ready.ObservedGeneration != 3 {
			t.Errorf("taken for healthy: %s", s)
		}
		if i > 0 && s.ready.Status != a.list()[i-1].ready.Status {
			changes++
		}
	}
	if changes > 4 { // none, perhaps False, True, False, True
		t.Errorf("Ready changed %d times:\n%v", changes, a.list())
	}
}
