package buildcache

import (
	"os"
	"testing"

	"drover/e2e/fixture"
)

// Programs returns the directory of the Kubernetes programs for a test: $DROVER_K8S_BIN,
// or, in CI and where the lab may run, those of [Kubernetes], whose build may take ten
// minutes. Elsewhere it skips the test.
func Programs(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("DROVER_K8S_BIN"); dir != "" {
		return dir
	}
	if !fixture.Must() {
		fixture.Missing(t, "real control planes: set DROVER_E2E=1 to build them, or DROVER_K8S_BIN to a directory that has etcd, kube-apiserver, kube-controller-manager, kubeadm and kubectl")
	}
	dir, err := Kubernetes(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
