package admin_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"drover/e2e/fixture"
	"drover/pools/config/declared"
)

// TestGitOps: the chart takes the values of docs/farm.md, and those that docs/gitops.md gives to
// Argo CD and to Flux, and the objects there are objects.
func TestGitOps(t *testing.T) {
	pages := fixture.ReadFile(t, "../../docs/gitops.md") + fixture.ReadFile(t, "../../docs/farm.md")
	seen := map[string]int{}
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(pages, -1) {
		for text := range strings.SplitSeq(block[1], "\n---\n") {
			var m struct {
				APIVersion, Kind string
				Config           any // of the chart
				Spec             struct {
					Values any // of Flux
					Source struct{ Helm struct{ ValuesObject any } }
				}
			}
			if err := yaml.Unmarshal([]byte(text), &m); err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			values := m.Spec.Values
			if values == nil {
				values = m.Spec.Source.Helm.ValuesObject
			}
			if m.Config != nil {
				if err := yaml.Unmarshal([]byte(text), &values); err != nil {
					t.Fatal(err)
				}
				m.Kind = "values"
			}
			switch {
			case strings.HasPrefix(m.APIVersion, "drover.dev/"):
				if _, err := declared.Read("the manual", []byte(text)); err != nil {
					t.Error(err)
				}
			case values != nil:
				wantRendered(t, values)
			default:
				continue
			}
			seen[m.Kind]++
		}
	}
	for _, kind := range []string{"Tenant", "Machine", "Application", "HelmRelease", "values"} {
		if seen[kind] == 0 {
			t.Errorf("docs/gitops.md and docs/farm.md have no %s", kind)
		}
	}
}

// wantRendered fails the test unless the chart takes these values.
func wantRendered(t *testing.T, values any) {
	t.Helper()
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := helm(t, "template", "drover", chart, "--namespace", "farm", "-f", file); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
