// Package hosted_test runs hosted control planes for real: the controller of drover
// against a real admin API server, with the rights of deploy/admin-rbac.yaml alone, and
// the programs of its pods as processes.
package hosted_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drover/deploy"
	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
	defaults "drover/pools/config/controlplane"
	"drover/pools/kube"
	"drover/pools/kube/hosted"
)

const (
	namespace = "farm"
	version   = "v1.37.1"
	inside    = "DROVER_HOSTED_INSIDE" // set in the process that runs in the namespace
	scheduler = "DROVER_SCHEDULER"     // the program

	konnectivity = "DROVER_KONNECTIVITY" // the folder of its programs
)

var address = netip.MustParseAddr("10.231.0.2") // of the tenant's API server

// TestHosted runs the tests of this file in a network namespace: programs of a control
// plane have fixed ports.
func TestHosted(t *testing.T) {
	if os.Getenv(inside) != "" {
		testHosted(t)
		return
	}
	bin := buildcache.Programs(t)
	netns.Need(t)
	env := append(os.Environ(), inside+"=1", "DROVER_K8S_BIN="+bin)
	if fixture.Must() {
		dir, err := buildcache.Network(t.Context(), t.Output())
		if err != nil {
			t.Fatal(err)
		}
		programs, err := buildcache.Konnectivity(t.Context(), t.Output())
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, scheduler+"="+filepath.Join(dir, "kube-scheduler"), konnectivity+"="+programs)
	}
	ns := netns.NewNamespace(t, fmt.Sprintf("hosted%d", os.Getpid()))
	ns.Link(t, "plane0", ns, "plane1")
	ns.IP(t, "addr", "add", address.String()+"/24", "dev", "plane0")
	ns.IP(t, "link", "set", "plane0", "up")
	ns.IP(t, "link", "set", "plane1", "up")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := ns.Command(self, "-test.run=^TestHosted$", "-test.v", "-test.timeout=15m")
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Errorf("in the namespace: %v", err)
	}
}

// farm is an admin cluster with drover's controller and a kubelet.
type farm struct {
	t          *testing.T
	admin      *controlplane.Cluster
	people     kubernetes.Interface // its administrator's
	restricted *rest.Config         // drover's
	controller *hosted.Controller
	stop       func() // ends the controller
	kubelet    *kubelet
}

func testHosted(t *testing.T) {
	f := newFarm(t)
	tenant := cluster("tenant-a")
	f.controller.Set([]pools.Cluster{tenant})
	status := f.ready("tenant-a", version)
	if status.Endpoint != "10.231.0.2:6443" || status.VNI != 100 || len(status.Parts) != 5 {
		t.Errorf("status %+v", status)
	}
	if len(f.kubelet.missing) > 0 {
		t.Logf("not run here: %q", f.kubelet.missing)
	}
	t.Run("administrator", func(t *testing.T) { f.testAdministrator(t) })
	t.Run("check", func(t *testing.T) { f.testCheck(t) })
	t.Run("agents", func(t *testing.T) { f.testAgents(t) })
	t.Run("konnectivity", func(t *testing.T) { f.testKonnectivity(t) })
	t.Run("join", func(t *testing.T) { f.testJoin(t) })
	t.Run("steady", func(t *testing.T) { f.testSteady(t) })
	t.Run("renewal", func(t *testing.T) { f.testRenewal(t, tenant) })
	t.Run("versions", func(t *testing.T) { f.testVersions(t, tenant) })
	t.Run("addons", func(t *testing.T) { f.testAddons(t, tenant) })
	t.Run("restart of the pod", func(t *testing.T) { f.testPodDeleted(t) })
	t.Run("adoption", func(t *testing.T) { f.testAdoption(t, tenant) })
	t.Run("second tenant", func(t *testing.T) { f.testSecond(t, tenant) })
	t.Run("rights", func(t *testing.T) { f.testRights(t) })
	t.Run("lost key", func(t *testing.T) { f.testLostKey(t, tenant) })
	t.Run("delete", func(t *testing.T) { f.testDelete(t, tenant) })
}

func newFarm(t *testing.T) *farm {
	bin := buildcache.Programs(t)
	admin, err := controlplane.Start(t.Context(), controlplane.Config{Name: "admin", BinDir: bin, Dir: filepath.Join(t.TempDir(), "admin"), Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Stop)
	f := &farm{t: t, admin: admin}
	f.people = kubernetes.NewForConfigOrDie(load(t, admin.Admin))
	if _, err := admin.Kubectl(t.Context(), nil, "create", "namespace", namespace); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Kubectl(t.Context(), nil, "apply", "-f", "../../deploy/admin-rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	token, err := admin.Kubectl(t.Context(), nil, "create", "token", "drover", "-n", namespace)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "drover.conf")
	if err := admin.WriteKubeconfig(file, strings.TrimSpace(token)); err != nil {
		t.Fatal(err)
	}
	f.restricted = load(t, file)
	f.startKubelet(bin)
	f.start()
	t.Cleanup(func() { f.stop() })
	return f
}

func (f *farm) startKubelet(bin string) {
	dir, err := os.MkdirTemp("/tmp", "k") // short: see kubelet.dir
	if err != nil {
		f.t.Fatal(err)
	}
	f.kubelet = &kubelet{
		t: f.t, client: f.people, namespace: namespace, tenant: "tenant-a", version: version, dir: dir, programs: map[string]string{},
		running: map[types.UID]*runningPod{},
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		f.kubelet.programs[name] = filepath.Join(bin, name)
	}
	if s := os.Getenv(scheduler); s != "" {
		f.kubelet.programs["kube-scheduler"] = s
	}
	if dir := os.Getenv(konnectivity); dir != "" {
		f.kubelet.programs["konnectivity-server"] = filepath.Join(dir, "proxy-server")
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.kubelet.run(ctx) }()
	f.t.Cleanup(func() {
		stop()
		<-done
		if f.t.Failed() {
			for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
				text, _ := os.ReadFile(filepath.Join(dir, name+".log"))
				lines := strings.Split(string(text), "\n")
				f.t.Logf("%s said:\n%s", name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
			}
		}
		os.RemoveAll(dir)
	})
}

// start starts a controller.
func (f *farm) start() {
	f.controller = &hosted.Controller{
		Admin: func() (*rest.Config, error) { return f.restricted, nil }, Namespace: namespace, Identity: rand.Text(),
		RBAC: func(pools.Cluster) []byte { return deploy.Manifest(deploy.Rights{Approve: true}) },
		Log:  slog.New(slog.NewTextHandler(f.t.Output(), nil)),
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.controller.Run(ctx) }()
	f.stop = func() {
		stop()
		if err := <-done; err != nil {
			f.t.Errorf("controller: %v", err)
		}
	}
}

func load(t *testing.T, file string) *rest.Config {
	t.Helper()
	conf, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	conf.QPS, conf.Burst = 100, 200
	return conf
}

// cluster returns a tenant as the config describes it.
func cluster(name string) pools.Cluster {
	cp := &pools.ControlPlane{Version: version}
	cp.Endpoint.Address = address
	defaults.SetDefaults(cp)
	return pools.Cluster{Name: name, ControlPlane: cp, DeletionPolicy: pools.Retain, Approver: pools.ByDrover}
}

// with returns a tenant with a changed control plane.
func with(c pools.Cluster, change func(*pools.ControlPlane)) pools.Cluster {
	cp := *c.ControlPlane
	change(&cp)
	c.ControlPlane = &cp
	return c
}

// until waits until the status of a tenant is as wanted, and returns it.
func (f *farm) until(tenant, what string, reached func(hosted.Status) bool) (s hosted.Status) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 3*time.Minute)
	defer cancel()
	fixture.Until(ctx, f.t, what, func() (bool, error) {
		s = f.controller.Statuses()[tenant]
		return reached(s), fmt.Errorf("status %+v", s)
	})
	return s
}

func (f *farm) ready(tenant, version string) hosted.Status {
	f.t.Helper()
	return f.until(tenant, "tenant ready in "+version, func(s hosted.Status) bool {
		c := s.Condition(hosted.Ready)
		return c != nil && c.Status == metav1.ConditionTrue && s.Version == version
	})
}

// secret returns the data of a Secret of the admin cluster.
func (f *farm) secret(t *testing.T, name string) map[string][]byte {
	t.Helper()
	s, err := f.people.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Data
}

// file writes a kubeconfig of a Secret to a file.
func (f *farm) file(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), secret)
	if err := os.WriteFile(path, f.secret(t, secret)["value"], 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (f *farm) testAdministrator(t *testing.T) {
	text, err := hosted.Kubeconfig(t.Context(), load(t, f.admin.Admin), namespace, "tenant-a")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "admin.conf")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"create", "configmap", "kept", "-n", "default"}, {"auth", "can-i", "*", "*", "--all-namespaces"}} {
		if _, err := f.admin.KubectlAs(t.Context(), path, nil, args...); err != nil {
			t.Error(err)
		}
	}
	out, err := f.admin.KubectlAs(t.Context(), path, nil, "auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}")
	if err != nil || strings.Contains(out, "system:masters") {
		t.Errorf("groups %s, %v: want none that cannot be taken away", out, err)
	}
	// The tenant's administrator has no way into the admin cluster.
	_, err = f.admin.KubectlAs(t.Context(), path, nil, "get", "secrets", "-n", namespace, "--server=https://"+f.admin.Endpoint(), "--insecure-skip-tls-verify")
	if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("the admin cluster answers the tenant's administrator: %v", err)
	}
	if _, err := hosted.Kubeconfig(t.Context(), load(t, f.admin.Admin), namespace, "none"); err == nil || !strings.Contains(err.Error(), "there is no Secret farm/none-admin") {
		t.Errorf("got %v", err)
	}
}

// clusters returns drover's clusters with its own kubeconfig for the tenant.
func (f *farm) clusters(t *testing.T) *kube.Clusters {
	c := &kube.Clusters{Key: []byte("of this test, and long enough to seal"), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	c.Set([]pools.Cluster{{Name: "tenant-a", Kubeconfig: f.file(t, "tenant-a-kubeconfig")}})
	t.Cleanup(c.Close)
	return c
}

// testCheck checks the tenant as "drover cluster check" does.
func (f *farm) testCheck(t *testing.T) {
	found, err := f.clusters(t).Inspect(t.Context(), "tenant-a")
	if err != nil {
		t.Fatal(err)
	}
	agents := ""
	for _, finding := range found {
		if !finding.OK {
			t.Errorf("%s: %s", finding.What, finding.Detail)
		}
		if finding.What == "konnectivity" {
			agents = finding.Detail
		}
	}
	if len(found) < 8 || agents != "no node needs an agent yet" {
		t.Errorf("findings %+v", found)
	}
}

// testAgents adds a Node whose agent connects late.
func (f *farm) testAgents(t *testing.T) {
	admin := kubernetes.NewForConfigOrDie(load(t, f.file(t, "tenant-a-admin")))
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"kubernetes.io/os": "linux"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	agents := metav1.ListOptions{LabelSelector: "k8s-app=konnectivity-agent"}
	pod := ""
	fixture.Eventually(t, "the agent's pod is there", func() bool {
		pods, err := admin.CoreV1().Pods("kube-system").List(t.Context(), agents)
		if err != nil || len(pods.Items) == 0 {
			return false
		}
		pod = pods.Items[0].Name
		return true
	})
	fixture.Retry(t, "drover cluster check reports it", func() error {
		found, err := f.clusters(t).Inspect(t.Context(), "tenant-a")
		for _, finding := range found {
			if finding.What == "konnectivity" && !finding.OK && strings.Contains(finding.Detail, "no agent is connected") {
				return nil
			}
		}
		return fmt.Errorf("findings %+v, %v", found, err)
	})
	f.stop() // the next round comes in 30 seconds, or with a new controller
	f.start()
	f.controller.Set([]pools.Cluster{cluster("tenant-a")})
	f.until("tenant-a", "the status says that no agent is connected", func(s hosted.Status) bool {
		c := s.Condition(hosted.AgentsConnected)
		return c != nil && c.Reason == "NoAgent" && s.Nodes == 1 && s.NodesReady == 0
	})
	const ready = `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`
	if _, err := admin.CoreV1().Pods("kube-system").Patch(t.Context(), pod, types.StrategicMergePatchType, []byte(ready), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	f.until("tenant-a", "an agent is connected", func(s hosted.Status) bool {
		c := s.Condition(hosted.AgentsConnected)
		return c != nil && c.Status == metav1.ConditionTrue && s.Agents == 1
	})
	if err := admin.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// testSteady checks that a controller that starts anew changes nothing.
func (f *farm) testSteady(t *testing.T) {
	before := f.versions(t)
	if strings.Count(before, "\n") < 20 {
		t.Fatalf("few objects:\n%s", before)
	}
	f.stop()
	f.start()
	f.controller.Set([]pools.Cluster{cluster("tenant-a")})
	f.ready("tenant-a", version)
	if after := f.versions(t); after != before {
		t.Errorf("a controller that started anew changed objects; before\n%s\nafter\n%s", before, after)
	}
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

// served returns the certificate that the tenant's API server serves.
func served(t *testing.T) *x509.Certificate {
	conn, err := tls.Dial("tcp", "10.231.0.2:6443", &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return &x509.Certificate{}
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

// testRenewal checks that a new name is in the certificate that is served, by the same
// process.
func (f *farm) testRenewal(t *testing.T, tenant pools.Cluster) {
	pid := f.kubelet.pid("kube-apiserver")
	if slices.Contains(served(t).DNSNames, "api.example.org") {
		t.Fatal("the name is there already")
	}
	changed := with(tenant, func(cp *pools.ControlPlane) { cp.CertSANs = []string{"api.example.org"} })
	f.controller.Set([]pools.Cluster{changed})
	fixture.Eventually(t, "the new certificate is served", func() bool { return slices.Contains(served(t).DNSNames, "api.example.org") })
	if now := f.kubelet.pid("kube-apiserver"); now != pid || pid == 0 {
		t.Errorf("the API server was process %d, and is %d", pid, now)
	}
	f.controller.Set([]pools.Cluster{tenant})
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
		s := f.until("tenant-a", wrong.version+" is refused", func(s hosted.Status) bool {
			c := s.Condition(hosted.VersionAccepted)
			r := s.Condition(hosted.Ready)
			return c != nil && strings.Contains(c.Message, wrong.why) && r.Status == metav1.ConditionFalse && r.Reason == "VersionUnreachable"
		})
		if c := s.Condition(hosted.Available); c.Status != metav1.ConditionTrue || s.Version != version {
			t.Errorf("%s: version %s, %+v; want the one before to run on", wrong.version, s.Version, c)
		}
	}
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
	if now := f.kubelet.pid("kube-apiserver"); now != pid {
		t.Errorf("a refused version restarted the API server: process %d, then %d", pid, now)
	}

	f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Version = "v1.38.0" })})
	f.until("tenant-a", "v1.38.0 does not start", func(s hosted.Status) bool {
		c := s.Condition(hosted.Ready)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "kube-apiserver:v1.38.0 not found")
	})
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
}

// testAddons turns add-ons off and on.
func (f *farm) testAddons(t *testing.T, tenant pools.Cluster) {
	path := f.file(t, "tenant-a-admin")
	workloads := func() string {
		out, err := f.admin.KubectlAs(t.Context(), path, nil, "get", "daemonsets,deployments", "-A", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err.Error()
		}
		return out
	}
	if got, want := workloads(), "flannel konnectivity-agent kube-proxy coredns"; got != want {
		t.Errorf("workloads %q, want %q", got, want)
	}
	off := false
	f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Addons = pools.Addons{KubeProxy: &off, CoreDNS: &off, Flannel: &off} })})
	fixture.Eventually(t, "add-ons are removed", func() bool { return workloads() == "konnectivity-agent" })
	f.controller.Set([]pools.Cluster{tenant})
	fixture.Eventually(t, "add-ons are back", func() bool { return workloads() == "flannel konnectivity-agent kube-proxy coredns" })
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
	ca := f.secret(t, "tenant-a-ca")
	admin := f.file(t, "tenant-a-admin")
	f.controller.Set(nil)
	fixture.Eventually(t, "the control plane is gone", func() bool { return f.kubelet.pid("kube-apiserver") == 0 && f.objects(t) == "" })
	for _, gone := range []string{"tenant-a-kubeconfig", "tenant-a-admin"} {
		if _, err := f.people.CoreV1().Secrets(namespace).Get(t.Context(), gone, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("Secret %s: %v, want none", gone, err)
		}
	}
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
	for key, value := range f.secret(t, "tenant-a-ca") {
		if string(value) != string(ca[key]) {
			t.Errorf("%s of the CA changed", key)
		}
	}
	// The data are there, and the kubeconfig of before is good.
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
	s := f.until("tenant-b", "tenant-b has its number", func(s hosted.Status) bool { return s.VNI != 0 })
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

// testRights tries what drover may not do in the admin cluster.
func (f *farm) testRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drover.conf")
	if err := f.admin.WriteKubeconfig(file, f.restricted.BearerToken); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		"get secrets -n kube-system", "get secrets -n default", "get secrets -A", "create configmap x -n default", "get nodes", "get namespaces",
		"create namespace x", "create serviceaccount x -n farm", "create token drover -n farm", "create clusterrole x --verb=get --resource=pods",
		"create role x --verb=get --resource=pods -n farm", "run x --image=x -n farm", "delete pod tenant-a-control-plane-0 -n farm", "create deployment x --image=x -n farm",
		"delete namespace farm", "get leases -n kube-system", "exec tenant-a-control-plane-0 -n farm -- true", "logs tenant-a-control-plane-0 -n farm",
	} {
		out, err := f.admin.KubectlAs(t.Context(), file, nil, strings.Fields(call)...)
		if err == nil || !strings.Contains(err.Error(), "orbidden") {
			t.Errorf("%s: %q, %v; want Forbidden", call, out, err)
		}
	}
}

// testLostKey checks that the controller never makes a new CA for a tenant that had one.
func (f *farm) testLostKey(t *testing.T, tenant pools.Cluster) {
	secrets := f.people.CoreV1().Secrets(namespace)
	kept, err := secrets.Get(t.Context(), "tenant-a-ca", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := secrets.Delete(t.Context(), kept.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again := with(tenant, func(cp *pools.ControlPlane) { cp.CertSANs = []string{"other.example.org"} }) // a round at once
	f.controller.Set([]pools.Cluster{again})
	f.until("tenant-a", "the lost key is reported", func(s hosted.Status) bool {
		c := s.Condition(hosted.Ready)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, `the Secret "tenant-a-ca" is gone`)
	})
	restored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: kept.Name, Labels: kept.Labels, Annotations: kept.Annotations}, Data: kept.Data}
	if _, err := secrets.Create(t.Context(), restored, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.ready("tenant-a", version)
}

// testDelete removes a tenant with all that it has.
func (f *farm) testDelete(t *testing.T, tenant pools.Cluster) {
	tenant.DeletionPolicy = pools.Delete
	f.controller.Set([]pools.Cluster{tenant})
	fixture.Eventually(t, "the policy is noted", func() bool {
		set, err := f.people.AppsV1().StatefulSets(namespace).Get(t.Context(), "tenant-a-control-plane", metav1.GetOptions{})
		return err == nil && set.Annotations["drover.dev/deletion-policy"] == "Delete"
	})
	f.controller.Set(nil)
	fixture.Eventually(t, "nothing of the tenant is left", func() bool {
		out, err := f.admin.Kubectl(t.Context(), nil, "get", "all,secrets,networkpolicies,configmaps,persistentvolumeclaims", "-n", namespace, "-l", "drover.dev/tenant=tenant-a", "-o", "name")
		return err == nil && strings.TrimSpace(out) == ""
	})
}

// testJoin does what kubeadm join and a kubelet do with a token of kubeadm's own: it reads
// the objects of the tenant, and gets a certificate.
func (f *farm) testJoin(t *testing.T) {
	admin := f.file(t, "tenant-a-admin")
	kubeadm := filepath.Join(f.admin.BinDir, "kubeadm")
	made, err := exec.CommandContext(t.Context(), kubeadm, "--kubeconfig", admin, "token", "create", "--print-join-command").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	out := string(made)
	words := strings.Fields(out) // kubeadm join HOST:PORT --token T --discovery-token-ca-cert-hash H
	if len(words) < 7 || words[2] != "10.231.0.2:6443" {
		t.Fatalf("join command %q", out)
	}
	// The discovery of a node: cluster-info is signed with the token, and its CA is pinned.
	join := func(words []string) (string, error) {
		cmd := exec.CommandContext(t.Context(), kubeadm, append(words[1:], "--dry-run", "--node-name=n1", "--cri-socket=unix:///none", "--ignore-preflight-errors=all")...)
		cmd.Env = append(os.Environ(), "KUBEADM_JOIN_DRYRUN_DIR="+t.TempDir())
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	fixture.Retry(t, "kubeadm reads all that it needs", func() error {
		said, err := join(words)
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		return nil
	})
	words[6] = "sha256:" + strings.Repeat("0", 64)
	if said, err := join(words); err == nil || !strings.Contains(said, "none of the public keys") {
		t.Errorf("with another CA: %v, %s", err, said)
	}
}
