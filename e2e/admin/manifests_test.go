package admin_test

import (
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
)

// TestManifests: a real API server accepts what the chart renders with several values, each
// field of it, before anything is written.
func TestManifests(t *testing.T) {
	bin := buildcache.Programs(t)
	admin, err := controlplane.Start(t.Context(), controlplane.Config{Name: "manifests", BinDir: bin, Dir: filepath.Join(t.TempDir(), "admin"), Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Stop)
	for _, args := range []string{
		"create namespace farm", "apply -f ../testdata/admin-needs.yaml", "apply --server-side -f " + chart + "/crds", "wait --for=condition=Established --timeout=60s customresourcedefinitions --all",
	} {
		if _, err := admin.Kubectl(t.Context(), nil, strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	const least = `config.server.interfaces=["eth1"]`
	for name, values := range map[string][]string{
		"the least":           {"--set-json", least},
		"all":                 {"-f", "testdata/values.yaml"},
		"TestAdminCluster":    {"-f", "../testdata/admin.yaml"},
		"make demo-farm":      {"-f", "../demo/farm/values.yaml"},
		"volumes":             {"--set-json", least, "--set-json", `storage={"state": {"size": "2Gi", "storageClass": "fast"}, "images": {"claim": "images"}, "loaders": {"inImage": true}}`},
		"API and metrics":     {"--set-json", least, "--set-json", `service={"enabled": true, "tlsSecret": "tls"}`, "--set-json", `serviceMonitor={"enabled": true, "tokenSecret": {"name": "token"}}`},
		"a config, no object": {"--set-json", least, "--set-json", `objects.enabled=false`, "--set-json", `config.clusters=[{"name": "a", "secretRef": {"namespace": "tenants"}}]`, "--set-json", `secrets=["chassis"]`},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := helm(t, append([]string{"template", "drover", chart, "--namespace", "farm"}, values...)...)
			if err != nil {
				t.Fatal(err, rendered)
			}
			if out, err := admin.Kubectl(t.Context(), strings.NewReader(rendered), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
