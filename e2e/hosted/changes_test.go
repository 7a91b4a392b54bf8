package hosted_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/tenants"
)

// annotate writes annotations of an object of the admin cluster; null removes one.
func (f *farm) annotate(t *testing.T, resource, name string, notes map[string]string) {
	t.Helper()
	args := []string{"annotate", "--overwrite", resource, name, "-n", namespace}
	for note, value := range notes {
		if value == "" {
			args = append(args, note+"-")
			continue
		}
		args = append(args, note+"="+value)
	}
	if _, err := f.admin.Kubectl(t.Context(), nil, args...); err != nil {
		t.Fatal(err)
	}
}

// notReady waits until a tenant is not Ready, with a reason and a part of its message.
func (f *farm) notReady(tenant, reason, message string) tenants.Status {
	f.t.Helper()
	return f.until(tenant, "not Ready: "+reason+": "+message, func(s tenants.Status) bool {
		c := s.Condition(tenants.Ready)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, message)
	})
}

// wantRunning fails the test unless the API server is the process of before, and answers.
func (f *farm) wantRunning(t *testing.T, pid int, s tenants.Status) {
	t.Helper()
	if now := f.kubelet.pid("kube-apiserver"); now != pid || pid == 0 {
		t.Errorf("the API server was process %d, and is %d", pid, now)
	}
	if c := s.Condition(tenants.Available); c == nil || c.Status != metav1.ConditionTrue || s.Version != version {
		t.Errorf("version %s, %+v; want the control plane to run on", s.Version, c)
	}
}

// testOldNotes restores a Secret of the CA that notes an older version than the one that runs:
// that is neither run again nor, when it is meant, gone back to.
func (f *farm) testOldNotes(t *testing.T, tenant pools.Cluster) {
	f.ready("tenant-a", version)
	pid := f.kubelet.pid("kube-apiserver")
	for _, old := range []struct{ noted, meant string }{{"v1.33.0", version}, {"v1.36.4", "v1.36.4"}} {
		f.stop()
		notes := map[string]string{"drover.dev/version": old.noted, "drover.dev/etcd": "3.5.24-0"}
		f.annotate(t, "secret", "tenant-a-ca", notes)
		f.annotate(t, "secret", "tenant-a-certificates", notes)
		f.annotate(t, "statefulset", "tenant-a-control-plane", map[string]string{"drover.dev/ran": "", "drover.dev/etcd": ""}) // its pod alone says what runs
		f.start()
		f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Version = old.meant })})
		if old.meant == version {
			f.wantRunning(t, pid, f.ready("tenant-a", version))
		} else {
			f.wantRunning(t, pid, f.notReady("tenant-a", "VersionUnreachable", "v1.37.1 runs, and etcd's data cannot go back to v1.36.4"))
		}
		for _, secret := range []string{"tenant-a-ca", "tenant-a-certificates"} {
			fixture.Eventually(t, "the version that runs is noted on "+secret, func() bool { return f.note(t, secret, "drover.dev/version") == version })
		}
		f.wantEtcd(t, "3.7.0-0")
	}
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
}

// testFixed declares what a control plane that has data cannot become. It runs on as it was,
// until that is taken back.
func (f *farm) testFixed(t *testing.T, tenant pools.Cluster) {
	pid := f.kubelet.pid("kube-apiserver")
	for reason, change := range map[string]func(*pools.ControlPlane){
		"StorageFixed":  func(cp *pools.ControlPlane) { cp.Storage.Size = "16Gi" },
		"NetworksFixed": func(cp *pools.ControlPlane) { cp.ServiceSubnet = prefixes(t, "10.99.0.0/16") },
	} {
		f.controller.Set([]pools.Cluster{with(tenant, change)})
		f.wantRunning(t, pid, f.notReady("tenant-a", reason, "back to "))
	}
	f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Storage.Size = "8192Mi" })}) // the same
	f.wantRunning(t, pid, f.ready("tenant-a", version))
	f.controller.Set([]pools.Cluster{tenant})
}

func prefixes(t *testing.T, text string) (p pools.Prefixes) {
	t.Helper()
	if err := p.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return p
}

// history keeps the condition Ready of a tenant over all rounds.
type history struct {
	tenant string

	mu    sync.Mutex
	ready []metav1.Condition
}

func (h *history) add(tenant string, s tenants.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := s.Condition(tenants.Ready); tenant == h.tenant && c != nil {
		h.ready = append(h.ready, *c)
	}
}

// want fails the test unless there was a round, and the tenant was Ready in all, since the
// same time.
func (h *history) want(t *testing.T, since metav1.Time) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.ready {
		if c.Status != metav1.ConditionTrue || !c.LastTransitionTime.Equal(&since) {
			t.Errorf("%s was not Ready since %s: %+v", h.tenant, since, c)
		}
	}
	if len(h.ready) == 0 {
		t.Error("there was no round")
	}
}

// testReadyStays checks that neither a restart of drover nor an edit that starts no pod makes a
// tenant unready, while another control plane starts. One that has to wait for that other one
// stays Available.
func (f *farm) testReadyStays(t *testing.T, tenant pools.Cluster) {
	s := f.ready("tenant-a", version)
	since := s.Condition(tenants.Ready).LastTransitionTime
	time.Sleep(time.Until(since.Add(1100 * time.Millisecond))) // conditions have whole seconds
	f.stop()
	seen := &history{tenant: "tenant-a"}
	now := time.Now()
	f.onStatus, f.now = seen.add, func() time.Time { return now } // no start takes too long
	f.start()
	f.onStatus, f.now = nil, nil
	other := outside("tenant-b")
	f.controller.Set([]pools.Cluster{tenant, other})
	f.notReady("tenant-b", "Starting", "")
	f.until("tenant-a", "a round", func(s tenants.Status) bool { return s.Endpoint != "" })

	edited := with(tenant, func(cp *pools.ControlPlane) { cp.CertSANs = []string{"edited.example.org"} })
	f.controller.Set([]pools.Cluster{edited, other})
	fixture.Eventually(t, "the edit is carried out", func() bool { return slices.Contains(f.served().DNSNames, "edited.example.org") })
	seen.want(t, since)

	other = outside("tenant-c") // it starts now, and its pod never runs
	f.controller.Set([]pools.Cluster{edited, other})
	f.notReady("tenant-c", "Starting", "")
	pid := f.kubelet.pid("kube-apiserver")
	f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) {
		cp.ExtraArgs.APIServer = map[string]string{"v": "1"}
	}), other})
	f.wantRunning(t, pid, f.notReady("tenant-a", "Waiting", "another control plane starts"))
	f.stop()
	f.start()
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
}

// outside returns a tenant whose API server cannot be reached, and whose pod does not run.
func outside(name string) pools.Cluster {
	c := with(cluster(name), func(cp *pools.ControlPlane) {
		cp.Endpoint.Address, cp.Endpoint.ServiceType = otherAddress.Next(), pools.ClusterIP
	})
	c.DeletionPolicy = pools.Delete
	return c
}

// testBrokenEarly gives the Service of a tenant away. It is left alone, and the status says how
// the control plane is all the same.
func (f *farm) testBrokenEarly(t *testing.T, tenant pools.Cluster) {
	f.ready("tenant-a", version)
	pid := f.kubelet.pid("kube-apiserver")
	f.label(t, "service", "tenant-a-api", "drover.dev/tenant=tenant-x")
	admin := kubernetes.NewForConfigOrDie(f.load(f.file(t, "tenant-a-admin")))
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.stop()
	f.start()
	f.controller.Set([]pools.Cluster{tenant})
	f.notReady("tenant-a", "Error", `the Service "tenant-a-api" is one of the tenant "tenant-x"`)
	s := f.until("tenant-a", "its Node is counted", func(s tenants.Status) bool { return s.Nodes == 1 })
	f.wantRunning(t, pid, s)
	if err := admin.CoreV1().Nodes().Delete(t.Context(), "n3", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	f.label(t, "service", "tenant-a-api", "drover.dev/tenant=tenant-a")
	f.ready("tenant-a", version)
}

func (f *farm) label(t *testing.T, resource, name, label string) {
	t.Helper()
	if _, err := f.admin.Kubectl(t.Context(), nil, "label", "--overwrite", resource, name, label, "-n", namespace); err != nil {
		t.Fatal(err)
	}
}

// testMissing deletes what drover has made in the tenant, and then all data: it is made again
// in the next round.
func (f *farm) testMissing(t *testing.T) {
	f.ready("tenant-a", version)
	path := f.file(t, "tenant-a-admin")
	agent := func() error {
		_, err := f.admin.KubectlAs(t.Context(), path, nil, "get", "daemonset/konnectivity-agent", "configmap/kubeadm-config", "-n", "kube-system")
		return err
	}
	if _, err := f.admin.KubectlAs(t.Context(), path, nil, "delete", "daemonset/konnectivity-agent", "-n", "kube-system"); err != nil {
		t.Fatal(err)
	}
	fixture.Retry(t, "the agent is there again", agent)

	f.kubelet.mu.Lock()
	f.kubelet.wipe = true
	f.kubelet.mu.Unlock()
	pid := f.kubelet.pid("kube-apiserver")
	if err := f.people.CoreV1().Pods(namespace).Delete(t.Context(), "tenant-a-control-plane-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "another API server runs", func() bool { now := f.kubelet.pid("kube-apiserver"); return now != 0 && now != pid })
	fixture.Retry(t, "the new data have all objects", agent)
	f.ready("tenant-a", version)
}

// testRotation replaces the credentials in the kubeconfig of the admin cluster.
func (f *farm) testRotation(t *testing.T, tenant pools.Cluster) {
	file := filepath.Join(t.TempDir(), "admin.conf")
	if err := f.admin.WriteKubeconfig(file, "no-token"); err != nil {
		t.Fatal(err)
	}
	f.stop()
	f.adminFile = file
	f.start()
	f.controller.Set([]pools.Cluster{tenant})
	fixture.Retry(t, "the Lease cannot be read", func() error {
		if err := f.controller.Problem(); err == nil || !strings.Contains(err.Error(), "Lease") || !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("problem: %w", err)
		}
		return nil
	})
	write(t, file, fixture.ReadFile(t, f.drover))
	f.ready("tenant-a", version)
	if err := f.controller.Problem(); err != nil {
		t.Error(err)
	}
	f.stop()
	f.adminFile = ""
	f.start()
	f.controller.Set([]pools.Cluster{tenant})
}
