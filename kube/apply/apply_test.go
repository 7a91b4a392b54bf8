package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"drover/e2e/apitest"
	"drover/kube/apply"
)

const (
	maps = "/api/v1/namespaces/hall/configmaps/"

	manifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: hall, labels: {by: drover}}
data: {a: new}
---
# a comment alone
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: second, labels: {by: drover}}
---
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "third", "namespace": "hall", "labels": {"by": "drover"}}}
`
)

// newCluster returns an API server and its client.
func newCluster(t *testing.T) (*apitest.Server, dynamic.Interface) {
	t.Helper()
	s := apitest.New(t, nil)
	client, err := dynamic.NewForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

// configMap is one that is there already.
func configMap(labels apitest.Object) apitest.Object {
	return apitest.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": apitest.Object{"labels": labels, "namespace": "hall"}, "data": apitest.Object{"a": "old", "b": "of another"}}
}

// writes returns the requests of a server that change something, without their queries.
func writes(s *apitest.Server) (all []string) {
	for _, r := range s.Requests("") {
		if path, query, _ := strings.Cut(r, "?"); !strings.HasPrefix(path, "GET") && !strings.Contains(query, "dryRun=All") {
			all = append(all, path)
		}
	}
	return all
}

func TestObjects(t *testing.T) {
	all, err := apply.Objects([]byte(manifest))
	var names []string
	for _, o := range all {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	if want := []string{"ConfigMap hall/first", "ClusterRole /second", "ConfigMap hall/third"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
	for _, text := range []string{"", "\n---\n---\n", "# nothing\n", "{}", "null\n---\nnull"} {
		if all, err := apply.Objects([]byte(text)); err != nil || len(all) != 0 {
			t.Errorf("%q: %d objects, %v, want none", text, len(all), err)
		}
	}
	for name, text := range map[string]string{
		"a list": "- a\n", "a text": "hello\n", "cut short": "a: [", "deep": strings.Repeat("[", 20_000), "a loop": "a: &a [*a]\n", "second document": manifest + "---\na: [",
	} {
		if all, err := apply.Objects([]byte(text)); err == nil || all != nil {
			t.Errorf("%s: %d objects and no error", name, len(all))
		}
	}
}

// TestManifest: objects are applied in their order, by the manager, over the values of others.
// What others have added stays. After an error the later ones are not touched.
func TestManifest(t *testing.T) {
	s, client := newCluster(t)
	s.Put(maps+"first", configMap(nil))
	var done []string
	note := func(o *unstructured.Unstructured) { done = append(done, o.GetName()+" "+fmt.Sprint(o.GetUID() != "")) }
	if err := apply.Manifest(t.Context(), client, "tester", []byte(manifest), note); err != nil {
		t.Fatal(err)
	}
	if want := []string{"first true", "second true", "third true"}; !slices.Equal(done, want) {
		t.Errorf("done with %q, want %q", done, want)
	}
	if got := s.Get(maps + "first"); apitest.Text(got, "data", "a") != "new" || apitest.Text(got, "data", "b") != "of another" {
		t.Errorf("got %v", got)
	}
	for _, r := range s.Requests("PATCH") {
		if !strings.Contains(r, "fieldManager=tester") || !strings.Contains(r, "force=true") {
			t.Errorf("%s: no apply of the manager", r)
		}
	}
	s.Before(func(_, path string) *apitest.Problem {
		if strings.HasSuffix(path, "/second") {
			return &apitest.Problem{Code: 403, Reason: "Forbidden", Message: "not you"}
		}
		return nil
	})
	before, done := len(s.Requests("third")), nil
	err := apply.Manifest(t.Context(), client, "tester", []byte(manifest), note)
	if err == nil || !strings.Contains(err.Error(), `ClusterRole "second": `) || len(s.Requests("third")) != before || !slices.Equal(done, []string{"first true"}) {
		t.Errorf("got error %v, done with %q", err, done)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := apply.Manifest(ctx, client, "tester", []byte(manifest), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	requests := len(s.Requests(""))
	if err := apply.Manifest(t.Context(), client, "tester", []byte(manifest+"---\na: ["), nil); err == nil || len(s.Requests("")) != requests {
		t.Errorf("a manifest with a mistake at its end: error %v, %d requests", err, len(s.Requests(""))-requests)
	}
}

// TestGuarded: an object of another stays as it is, and so does one that takes the place of the
// one that was checked.
func TestGuarded(t *testing.T) {
	foreign := errors.New("it is another's")
	check := func(live *unstructured.Unstructured) error {
		if live.GetLabels()["by"] != "drover" {
			return foreign
		}
		return nil
	}
	s, client := newCluster(t)
	s.Put(maps+"first", configMap(apitest.Object{"by": "drover"}))
	if err := apply.Guarded(t.Context(), client, "tester", []byte(manifest), check, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Get(maps + "first"); apitest.Text(got, "data", "a") != "new" || s.Get(maps+"third") == nil {
		t.Errorf("got %v, third %v", got, s.Get(maps+"third"))
	}
	s, client = newCluster(t)
	s.Put(maps+"first", configMap(apitest.Object{"by": "someone"}))
	if err := apply.Guarded(t.Context(), client, "tester", []byte(manifest), check, nil); !errors.Is(err, foreign) || len(writes(s)) > 0 {
		t.Errorf("another's: got error %v, writes %q", err, writes(s))
	}
	s, client = newCluster(t)
	s.Put(maps+"first", configMap(apitest.Object{"by": "drover"}))
	replace := func(live *unstructured.Unstructured) error {
		s.Drop(maps + "first")
		s.Put(maps+"first", configMap(apitest.Object{"by": "someone"}))
		return check(live)
	}
	if err := apply.Guarded(t.Context(), client, "tester", []byte(manifest), replace, nil); err == nil || apitest.Text(s.Get(maps+"first"), "data", "a") != "old" {
		t.Errorf("replaced after the check: error %v, now %v", err, s.Get(maps+"first"))
	}
	s.Before(func(_, path string) *apitest.Problem {
		return &apitest.Problem{Code: 500, Reason: "InternalError", Message: "no etcd"}
	})
	called := false
	if err := apply.Guarded(t.Context(), client, "tester", []byte(manifest), func(*unstructured.Unstructured) error { called = true; return nil }, nil); err == nil || called {
		t.Errorf("what is there is not known: error %v, called %t", err, called)
	}
}

// TestDry: Live and DryRun change nothing, and Live does without the right to get.
func TestDry(t *testing.T) {
	s, client := newCluster(t)
	all, err := apply.Objects([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if live, err := apply.Live(t.Context(), client, all[0]); live != nil || err != nil {
		t.Errorf("none is there: got %v, %v", live, err)
	}
	s.Put(maps+"first", configMap(nil))
	live, err := apply.Live(t.Context(), client, all[0])
	if err != nil || live.GetUID() == "" || apitest.Text(live.Object, "data", "a") != "old" {
		t.Errorf("got %v, %v", live, err)
	}
	after, err := apply.DryRun(t.Context(), client, "tester", all[0])
	if err != nil || apitest.Text(after.Object, "data", "a") != "new" || apitest.Text(after.Object, "data", "b") != "of another" {
		t.Errorf("got %v, %v", after, err)
	}
	if got := s.Get(maps + "first"); apitest.Text(got, "data", "a") != "old" || len(writes(s)) > 0 || len(s.Requests("GET")) > 0 {
		t.Errorf("now %v, requests %q", got, s.Requests(""))
	}
}

// TestRemove: only drover's own objects are deleted, the last first, each as it was seen.
func TestRemove(t *testing.T) {
	ours := apitest.Object{"by": "drover"}
	s, client := newCluster(t)
	s.Put(maps+"first", configMap(ours))
	s.Put(maps+"third", configMap(ours))
	if err := apply.Remove(t.Context(), client, "by", "drover", []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if got, want := writes(s), []string{"DELETE " + maps + "third", "DELETE " + maps + "first"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, tt := range map[string]struct {
		change func(o apitest.Object)
		late   func(s *apitest.Server) // when it is about to be deleted
		fails  bool
	}{
		"another's":     {change: func(o apitest.Object) { o["metadata"].(apitest.Object)["labels"] = apitest.Object{"by": "someone"} }},
		"no label":      {change: func(o apitest.Object) { delete(o["metadata"].(apitest.Object), "labels") }},
		"going already": {change: func(o apitest.Object) { o["metadata"].(apitest.Object)["deletionTimestamp"] = "2026-01-01T00:00:00Z" }},
		"changed since": {late: func(s *apitest.Server) {
			s.Edit(maps+"first", func(o apitest.Object) { o["metadata"].(apitest.Object)["labels"] = nil })
		}, fails: true},
		"replaced since": {late: func(s *apitest.Server) { s.Drop(maps + "first"); s.Put(maps+"first", configMap(nil)) }, fails: true},
	} {
		s, client := newCluster(t)
		s.Put(maps+"first", configMap(ours))
		if tt.change != nil {
			s.Edit(maps+"first", tt.change)
		}
		s.Before(func(method, path string) *apitest.Problem {
			if method == "DELETE" && tt.late != nil {
				tt.late(s)
			}
			return nil
		})
		if err := apply.Remove(t.Context(), client, "by", "drover", []byte(manifest)); (err != nil) != tt.fails || s.Get(maps+"first") == nil {
			t.Errorf("%s: got error %v, now %v", name, err, s.Get(maps+"first"))
		}
	}
	s, client = newCluster(t)
	s.Put(maps+"first", configMap(ours))
	s.Before(func(method, _ string) *apitest.Problem {
		if method == "DELETE" {
			s.Drop(maps + "first")
		}
		return nil
	})
	if err := apply.Remove(t.Context(), client, "by", "drover", []byte(manifest)); err != nil {
		t.Errorf("gone in between: %v", err)
	}
}
