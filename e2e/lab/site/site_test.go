package site

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

func TestMatches(t *testing.T) {
	dedicated := pools.Taint{Key: "example.org/dedicated", Value: "a", Effect: "NoSchedule"}
	plan := &resolve.Plan{Node: "a1", Cluster: "tenant-a"}
	plan.Labels = map[string]string{"example.org/rack": "r1"}
	plan.Taints = []pools.Taint{dedicated}
	for _, tt := range []struct {
		name   string
		labels map[string]string
		taints []pools.Taint
		want   string
	}{
		{"as the farm says", map[string]string{"example.org/rack": "r1", "kubernetes.io/os": "linux"}, []pools.Taint{dedicated}, ""},
		{"taints of Kubernetes' own", map[string]string{"example.org/rack": "r1"},
			[]pools.Taint{{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"}, dedicated}, ""},
		{"label missing", nil, []pools.Taint{dedicated}, `has label example.org/rack="", the farm says "r1"`},
		{"label differs", map[string]string{"example.org/rack": "r2"}, []pools.Taint{dedicated}, `has label example.org/rack="r2", the farm says "r1"`},
		{"taint missing", map[string]string{"example.org/rack": "r1"}, nil, "has taints [], the farm says [example.org/dedicated=a:NoSchedule]"},
		{"taint too many", map[string]string{"example.org/rack": "r1"}, []pools.Taint{dedicated, {Key: "x", Effect: "NoExecute"}},
			"has taints [example.org/dedicated=a:NoSchedule x:NoExecute], the farm says [example.org/dedicated=a:NoSchedule]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n Node
			n.Metadata.Labels, n.Spec.Taints = tt.labels, tt.taints
			got := ""
			if err := matches(plan, &n); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReady(t *testing.T) {
	for text, want := range map[string]bool{
		`{"status":{"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}]}}`: true,
		`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`:                                           false,
		`{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`:                                         false,
		`{}`: false,
	} {
		var n Node
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		if got := n.Ready(); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

func TestPodToleratesItsNode(t *testing.T) {
	plan := &resolve.Plan{Node: "a1"}
	plan.Taints = []pools.Taint{{Key: "example.org/dedicated", Value: "a", Effect: "NoSchedule"}}
	b, err := json.Marshal(podFor(plan))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"nodeName":"a1"`, `"imagePullPolicy":"Never"`, `"name":"hello-a1"`,
		`"tolerations":[{"effect":"NoSchedule","key":"example.org/dedicated","operator":"Equal","value":"a"}]`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

func TestPruneKeepsTheCurrentImage(t *testing.T) {
	b := Built{Images: t.TempDir()}
	dir := filepath.Join(b.Images, Image)
	for i, name := range []string{"oldest", "older", "old", "new"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		day := time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes(path, day, day); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("oldest", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	if err := b.prune(Image); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{"current", "new", "old", "oldest"}; !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}
