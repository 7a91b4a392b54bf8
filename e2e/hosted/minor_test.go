package hosted_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/e2e/buildcache"
	"drover/e2e/fixture"
	"drover/pools"
	"drover/tenants"
)

const (
	before        = "DROVER_K8S_BEFORE"         // the folder of the programs of the minor version before
	beforeVersion = "DROVER_K8S_BEFORE_VERSION" // that version
)

// TestMinorUpdate runs a tenant in the minor version before, with the etcd that it came with. An
// update whose API server has no image is taken back, although the newer etcd has opened the
// data; then the update is done, and the data are there. It needs a second build of Kubernetes:
// DROVER_E2E_ALL=1.
func TestMinorUpdate(t *testing.T) {
	if os.Getenv(inside) == "" {
		if os.Getenv("DROVER_E2E_ALL") != "1" {
			t.Skip("SKIPPED, NOT TESTED: an update from the minor version before; set DROVER_E2E_ALL=1 to build that")
		}
		dir, v, err := buildcache.KubernetesBefore(t.Context(), t.Output())
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(before, dir)
		t.Setenv(beforeVersion, v)
	}
	if inNamespace(t) {
		testMinorUpdate(t)
	}
}

func testMinorUpdate(t *testing.T) {
	f := newAdmin(t, "")
	f.startKubelet()
	dir, old := os.Getenv(before), os.Getenv(beforeVersion)
	f.kubelet.mu.Lock()
	f.kubelet.others = map[string]string{"etcd:3.6.6-0": filepath.Join(dir, "etcd")}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		f.kubelet.others[name+":"+old] = filepath.Join(dir, name)
	}
	f.kubelet.mu.Unlock()
	f.start()
	t.Cleanup(func() { f.stop() })
	tenant := with(cluster("tenant-a"), func(cp *pools.ControlPlane) { cp.Version = old })
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", old)
	f.wantEtcd(t, "3.6.6-0")
	administrator := f.file(t, "tenant-a-admin")
	if _, err := f.admin.KubectlAs(t.Context(), administrator, nil, "create", "configmap", "kept", "-n", "default"); err != nil {
		t.Fatal(err)
	}

	missing := version + "9" // no such image, and the etcd of this minor version
	f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Version = missing })})
	f.until("tenant-a", missing+" does not start", func(s tenants.Status) bool {
		c := s.Condition(tenants.Ready)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "kube-apiserver:"+missing+" not found")
	})
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", old)
	f.wantEtcd(t, "3.7.0-0") // the older one cannot read the data any more
	f.wantFields(t, administrator, map[string]string{
		"configmap kept -n default .metadata.name":                 "kept",
		"daemonset kube-proxy -n kube-system .metadata.generation": "1", // it waits for the API server
	})

	f.controller.Set([]pools.Cluster{cluster("tenant-a")})
	f.ready("tenant-a", version)
	f.wantFields(t, administrator, map[string]string{
		"configmap kept -n default .metadata.name":                 "kept",
		"daemonset kube-proxy -n kube-system .metadata.generation": "2",
	})
	f.wantKubeadmJoin(t, administrator, "10.231.0.2:6443")
	f.controller.Set([]pools.Cluster{tenant})
	f.until("tenant-a", "the version before is refused", func(s tenants.Status) bool {
		c := s.Condition(tenants.Ready)
		return c != nil && c.Reason == "VersionUnreachable"
	})
}

// wantEtcd fails the test unless the pod of tenant-a has this version of etcd.
func (f *farm) wantEtcd(t *testing.T, want string) {
	t.Helper()
	got, err := f.admin.Kubectl(t.Context(), nil, "get", "statefulset", "tenant-a-control-plane", "-n", namespace, "-o",
		`jsonpath={.spec.template.spec.initContainers[?(@.name=="etcd")].image}{.spec.template.spec.containers[?(@.name=="etcd")].image}`)
	if err != nil || !strings.HasSuffix(got, "/etcd:"+want) {
		t.Errorf("etcd's image is %q, %v; want %s", got, err, want)
	}
	if note := f.note(t, "tenant-a-ca", "drover.dev/etcd"); note != want {
		t.Errorf("etcd %s is noted, want %s", note, want)
	}
}

// note returns an annotation of a Secret of the admin cluster, once it is there.
func (f *farm) note(t *testing.T, secret, annotation string) (value string) {
	t.Helper()
	fixture.Eventually(t, annotation+" is noted", func() bool {
		s, err := f.people.CoreV1().Secrets(namespace).Get(t.Context(), secret, metav1.GetOptions{})
		if err == nil {
			value = s.Annotations[annotation]
		}
		return value != ""
	})
	return value
}
