package hosted_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/tenants"
)

// testSteady checks that a second controller waits while the first one has the Lease, and that it
// changes nothing when it takes over.
func (f *farm) testSteady(t *testing.T) {
	before := f.versions(t)
	if strings.Count(before, "\n") < 20 {
		t.Fatalf("few objects:\n%s", before)
	}
	first, stop := f.holder(t), f.stop
	f.start()
	second := f.controller
	second.Set([]pools.Cluster{cluster("tenant-a")})
	if now := f.holder(t); now != first || len(second.Statuses()) > 0 {
		t.Errorf("the Lease was held by %s, and is by %s; the second controller has %+v", first, now, second.Statuses())
	}
	stop()
	f.ready("tenant-a", version)
	if now := f.holder(t); now != second.Identity {
		t.Errorf("the Lease is held by %s, want %s", now, second.Identity)
	}
	if after := f.versions(t); after != before {
		t.Errorf("a controller that took over changed objects; before\n%s\nafter\n%s", before, after)
	}
}

// holder returns the holder of the Lease of the controllers.
func (f *farm) holder(t *testing.T) string {
	t.Helper()
	l, err := f.people.CoordinationV1().Leases(namespace).Get(t.Context(), "drover-tenants", metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		t.Fatalf("%+v, %v", l, err)
	}
	return *l.Spec.HolderIdentity
}

// versions returns the objects that the controller keeps, and when it changed each.
func (f *farm) versions(t *testing.T) string {
	t.Helper()
	const path = `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation} {.metadata.managedFields[?(@.manager=="drover")].time}{"\n"}{end}`
	admin, err := f.admin.Kubectl(t.Context(), nil, "get", "services,configmaps,networkpolicies,statefulsets,secrets", "-n", namespace, "--show-managed-fields", "-o", path)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := f.admin.KubectlAs(t.Context(), f.file(t, "tenant-a-admin"), nil,
		"get", "configmaps,daemonsets,deployments,services,roles,rolebindings", "-A", "--show-managed-fields", "-o", path)
	if err != nil {
		t.Fatal(err)
	}
	return admin + tenant
}

// testVersions refuses versions that cannot be reached, and takes back one that does not
// start.
func (f *farm) testVersions(t *testing.T, tenant pools.Cluster) {
	pid := f.kubelet.pid("kube-apiserver")
	for _, wrong := range []struct{ version, why string }{
		{"v1.36.4", "etcd's data cannot go back to v1.36.4"},
		{"v1.37.0", "etcd's data cannot go back to v1.37.0"},
		{"v1.39.0", "more than one minor version up; go to a v1.38 first"},
	} {
		f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Version = wrong.version })})
		s := f.until("tenant-a", wrong.version+" is refused", func(s tenants.Status) bool {
			c := s.Condition(tenants.VersionAccepted)
			r := s.Condition(tenants.Ready)
			return c != nil && strings.Contains(c.Message, wrong.why) && r.Status == metav1.ConditionFalse && r.Reason == "VersionUnreachable"
		})
		if c := s.Condition(tenants.Available); c.Status != metav1.ConditionTrue || s.Version != version {
			t.Errorf("%s: version %s, %+v; want the one before to run on", wrong.version, s.Version, c)
		}
	}
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
	if now := f.kubelet.pid("kube-apiserver"); now != pid {
		t.Errorf("a refused version restarted the API server: process %d, then %d", pid, now)
	}

	f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Version = "v1.38.0" })})
	f.until("tenant-a", "v1.38.0 does not start", func(s tenants.Status) bool {
		c := s.Condition(tenants.Ready)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "kube-apiserver:v1.38.0 not found")
	})
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
}

// testPodDeleted deletes the pod of the control plane: the API comes back.
func (f *farm) testPodDeleted(t *testing.T) {
	pid := f.kubelet.pid("kube-apiserver")
	if err := f.people.CoreV1().Pods(namespace).Delete(t.Context(), "tenant-a-control-plane-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "another API server runs", func() bool { now := f.kubelet.pid("kube-apiserver"); return now != 0 && now != pid })
	f.ready("tenant-a", version)
}

// testAdoption removes a tenant, and makes the same again: its keys and data are those of
// before.
func (f *farm) testAdoption(t *testing.T, tenant pools.Cluster) {
	secrets := []string{"tenant-a-ca", "tenant-a-front-proxy-ca", "tenant-a-sa"}
	keys := map[string]map[string][]byte{}
	for _, name := range secrets {
		keys[name] = f.secret(t, name)
	}
	admin := f.file(t, "tenant-a-admin")
	drover := f.file(t, "tenant-a-kubeconfig") // with a token
	// While its object is there, a tenant that the farm does not have keeps its control plane.
	pid := f.kubelet.pid("kube-apiserver")
	f.controller.Set([]pools.Cluster{})
	fixture.Eventually(t, "the object is asked for", func() bool {
		used, err := f.admin.Used("system:serviceaccount:" + namespace + ":drover")
		return err == nil && slices.Contains(used, "get drover.dev/tenants")
	})
	if now := f.kubelet.pid("kube-apiserver"); now != pid || f.objects(t) == "" {
		t.Errorf("the API server was process %d, and is %d, with %s", pid, now, f.objects(t))
	}
	f.forget(t, "tenant-a")
	f.stop() // the next round comes in 30 seconds, or with a new controller
	f.start()
	f.controller.Set(nil)
	fixture.Eventually(t, "the control plane is gone", func() bool { return f.kubelet.pid("kube-apiserver") == 0 && f.objects(t) == "" })
	for _, gone := range []string{"tenant-a-kubeconfig", "tenant-a-admin"} {
		if _, err := f.people.CoreV1().Secrets(namespace).Get(t.Context(), gone, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("Secret %s: %v, want none", gone, err)
		}
	}
	// A Secret of the CA from an old backup, and other networks than the data have, change nothing.
	f.annotate(t, "secret", "tenant-a-ca", map[string]string{"drover.dev/version": "v1.33.0", "drover.dev/etcd": "3.5.24-0"})
	f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.PodSubnet = prefixes(t, "10.99.0.0/16") })})
	f.notReady("tenant-a", "NetworksFixed", "10.99.0.0/16 is not carried out")
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
	for _, name := range secrets {
		if now := f.secret(t, name); !reflect.DeepEqual(now, keys[name]) {
			t.Errorf("the keys in %s changed", name)
		}
	}
	f.declare(t, "tenant-a")
	f.until("tenant-a", "its number is the one of before", func(s tenants.Status) bool { return s.VNI == 100 })
	// The data are there, and the credentials of before are good.
	if _, err := f.admin.KubectlAs(t.Context(), drover, nil, "get", "nodes"); err != nil {
		t.Error(err)
	}
	if _, err := f.admin.KubectlAs(t.Context(), admin, nil, "get", "configmap", "kept", "-n", "default"); err != nil {
		t.Error(err)
	}
	// An older version is refused also after an adoption: see chooseVersion.
	note := f.people.CoreV1().Secrets(namespace)
	s, err := note.Get(t.Context(), "tenant-a-ca", metav1.GetOptions{})
	if err != nil || s.Annotations["drover.dev/version"] != version {
		t.Errorf("annotations %v, %v", s.Annotations, err)
	}
}

// objects returns the names of the objects of tenant-a's pods.
func (f *farm) objects(t *testing.T) string {
	out, err := f.admin.Kubectl(t.Context(), nil, "get", "statefulsets,services,networkpolicies,pods", "-n", namespace, "-l", "drover.dev/tenant=tenant-a", "-o", "name")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out)
}

// testSecond checks that a second tenant has a network number and keys of its own, and that
// it starts after the first.
func (f *farm) testSecond(t *testing.T, tenant pools.Cluster) {
	second := with(cluster("tenant-b"), func(cp *pools.ControlPlane) { cp.Endpoint.Address = netip.MustParseAddr("10.231.0.3") })
	f.controller.Set([]pools.Cluster{tenant, second})
	s := f.until("tenant-b", "tenant-b has its number", func(s tenants.Status) bool { return s.VNI != 0 })
	if s.VNI != 101 {
		t.Errorf("VNI %d, want 101", s.VNI)
	}
	if string(f.secret(t, "tenant-a-ca")["tls.crt"]) == string(f.secret(t, "tenant-b-ca")["tls.crt"]) {
		t.Error("both tenants have one CA")
	}
	second.DeletionPolicy = pools.Delete
	f.controller.Set([]pools.Cluster{tenant, second})
	fixture.Eventually(t, "the policy is noted", func() bool {
		set, err := f.people.AppsV1().StatefulSets(namespace).Get(t.Context(), "tenant-b-control-plane", metav1.GetOptions{})
		return err == nil && set.Annotations["drover.dev/deletion-policy"] == "Delete"
	})
	f.controller.Set([]pools.Cluster{tenant})
	fixture.Eventually(t, "nothing of tenant-b is left", func() bool {
		out, err := f.admin.Kubectl(t.Context(), nil, "get", "all,secrets,networkpolicies,configmaps", "-n", namespace, "-l", "drover.dev/tenant=tenant-b", "-o", "name")
		return err == nil && strings.TrimSpace(out) == ""
	})
}

// testDelete removes a tenant with all that it has.
func (f *farm) testDelete(t *testing.T, tenant pools.Cluster) {
	tenant.DeletionPolicy = pools.Delete
	f.controller.Set([]pools.Cluster{tenant})
	fixture.Eventually(t, "the policy is noted", func() bool {
		set, err := f.people.AppsV1().StatefulSets(namespace).Get(t.Context(), "tenant-a-control-plane", metav1.GetOptions{})
		return err == nil && set.Annotations["drover.dev/deletion-policy"] == "Delete"
	})
	f.forget(t, "tenant-a")
	f.wantGone(t)
}

// wantGone removes tenant-a, whose deletionPolicy is Delete, and waits until nothing of it is
// left.
func (f *farm) wantGone(t *testing.T) {
	t.Helper()
	f.controller.Set(nil)
	fixture.Eventually(t, "nothing of the tenant is left", func() bool {
		out, err := f.admin.Kubectl(t.Context(), nil, "get", "all,secrets,networkpolicies,configmaps,persistentvolumeclaims", "-n", namespace, "-l", "drover.dev/tenant=tenant-a", "-o", "name")
		return err == nil && strings.TrimSpace(out) == ""
	})
	// The volume goes with its claim.
	if err := os.RemoveAll(filepath.Join(f.kubelet.dir, "tenant-a-control-plane-0")); err != nil {
		t.Error(err)
	}
}
