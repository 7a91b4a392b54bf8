package buildcache

import (
	"slices"
	"strings"
	"testing"
)

func TestKubernetesStamp(t *testing.T) {
	tests := []struct {
		name, version string
		want          []string // a part of the result; nil for an error
	}{
		{"a release", "v1.37.1", []string{"gitVersion=v1.37.1", "gitMajor=1", "gitMinor=37"}},
		{"a release candidate", "v1.38.0-rc.1", []string{"gitVersion=v1.38.0-rc.1", "gitMinor=38"}},
		{"no version", "latest", nil},
		{"not required at all", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := kubernetesStamp(map[string]string{"k8s.io/kubernetes": tt.version})
			if (err == nil) != (tt.want != nil) {
				t.Fatalf("got %q, %v, want %q", got, err, tt.want)
			}
			for _, pkg := range []string{"k8s.io/component-base/version.", "k8s.io/client-go/pkg/version."} {
				for _, want := range tt.want {
					if !slices.Contains(got, pkg+want) {
						t.Errorf("got %q, want %q in it", got, pkg+want)
					}
				}
			}
		})
	}
}

// TestParts computes the keys of all parts from the real sources, which runs the
// go command but builds nothing.
func TestParts(t *testing.T) {
	t.Setenv("DROVER_CACHE", t.TempDir())
	log := share(nil)
	first, err := debian12.gather(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	again, err := debian12.gather(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for i, p := range first.all() {
		if p.key == "" || p.key != again.all()[i].key {
			t.Errorf("%s: got key %q, then %q", p.kind, p.key, again.all()[i].key)
		}
		if other, dup := seen[p.key]; dup {
			t.Errorf("%s and %s have the same key", p.kind, other)
		}
		if strings.Contains(p.kind, "-") { // prune would mistake it for a part of another kind
			t.Errorf("kind %q contains a dash", p.kind)
		}
		seen[p.key] = p.kind
	}
	// The user's GOFLAGS are not used, so that they are not part of the key.
	t.Setenv("GOFLAGS", "-ldflags=-X=main.x=y")
	other, err := debian12.gather(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := other.kubernetes.key, first.kubernetes.key; got != want {
		t.Errorf("with GOFLAGS: got key %q, want %q", got, want)
	}
}
