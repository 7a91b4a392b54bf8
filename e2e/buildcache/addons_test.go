package buildcache

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"drover/tenants/manifests"
)

// TestTenantImages: the images that a hosted tenant runs are those that the lab builds, in
// the same versions.
func TestTenantImages(t *testing.T) {
	root, err := SourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	addOns, err := addOnNames(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	version, err := required(t.Context(), filepath.Join(root, kubernetesModule))
	if err != nil {
		t.Fatal(err)
	}
	konnectivity, err := required(t.Context(), filepath.Join(root, "e2e/konnectivity"))
	if err != nil {
		t.Fatal(err)
	}
	kubernetes := version["k8s.io/kubernetes"]
	hosted := hostedImages(kubernetes, version["go.etcd.io/etcd/server/v3"], konnectivity["sigs.k8s.io/apiserver-network-proxy"])
	built := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(hosted)), slices.Collect(maps.Values(addOns)))))
	var want []string
	plane := manifests.Plane{Version: kubernetes}
	for _, program := range []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
		"konnectivity-server", "konnectivity-agent", "coredns", "flannel", "flannel-cni",
	} {
		image, err := plane.Image(program)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, image)
	}
	slices.Sort(want)
	if !slices.Equal(built, want) {
		t.Errorf("the lab builds\n%q\ntenants run\n%q", built, want)
	}
}
