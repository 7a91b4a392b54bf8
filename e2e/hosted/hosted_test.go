// Package hosted_test runs hosted control planes for real: the controller of drover
// against a real admin API server, with the rights of deploy/admin-rbac.yaml alone, and
// the programs of its pods as processes.
package hosted_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	"drover/pools/config"
	defaults "drover/pools/config/controlplane"
	"drover/tenants"
)

const (
	namespace = "farm"
	version   = "v1.37.1"
	inside    = "DROVER_HOSTED_INSIDE" // set in the process that runs in the namespace
	scheduler = "DROVER_SCHEDULER"     // the program

	konnectivity = "DROVER_KONNECTIVITY" // the folder of its programs

	rbac = "../../deploy/admin-rbac.yaml"
	crds = "../../deploy/charts/drover/crds"
)

// Addresses of the tenant's API server.
var (
	address      = netip.MustParseAddr("10.231.0.2")
	otherAddress = netip.MustParseAddr("10.231.0.4")
	address6     = netip.MustParseAddr("fd00:231::2")
)

// TestHosted runs the tests of this file in a network namespace: programs of a control
// plane have fixed ports.
func TestHosted(t *testing.T) {
	if inNamespace(t) {
		testHosted(t)
	}
}

// inNamespace reports whether the test runs in a network namespace with the addresses of the
// tenant. Otherwise it runs it in one.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	bin := buildcache.Programs(t)
	netns.Need(t)
	if fixture.Must() {
		hostedPrograms(t)
	}
	env := append(os.Environ(), inside+"=1", "DROVER_K8S_BIN="+bin)
	ns := netns.NewNamespace(t, fmt.Sprintf("hosted%d", os.Getpid()))
	ns.Link(t, "plane0", ns, "plane1")
	ns.IP(t, "addr", "add", address.String()+"/24", "dev", "plane0")
	ns.IP(t, "addr", "add", otherAddress.String()+"/24", "dev", "plane0")
	ns.IP(t, "addr", "add", address6.String()+"/64", "dev", "plane0", "nodad")
	ns.IP(t, "link", "set", "plane0", "up")
	ns.IP(t, "link", "set", "plane1", "up")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := ns.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=30m")
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Errorf("in the namespace: %v", err)
	}
	return false
}

// hostedPrograms builds what a tenant's pod runs beside the programs of the admin cluster.
func hostedPrograms(t *testing.T) {
	t.Helper()
	dir, err := buildcache.Network(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	programs, err := buildcache.Konnectivity(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(scheduler, filepath.Join(dir, "kube-scheduler"))
	t.Setenv(konnectivity, programs)
}

// farm is an admin cluster with drover's controller and a kubelet.
type farm struct {
	t          *testing.T
	net        netns.Namespace // where all runs; "" is that of the test
	admin      *controlplane.Cluster
	people     kubernetes.Interface // its administrator's
	drover     string               // file of drover's kubeconfig
	restricted *rest.Config         // drover's
	controller *tenants.Controller
	stop       func() // ends the controller
	kubelet    *kubelet
	declared   string       // the tenant that has an object
	live       *config.Live // the farm with objects; nil: tests set the tenants

	onStatus  func(tenant string, s tenants.Status) // of the next controller
	adminFile string                                // its kubeconfig; "": restricted
	now       func() time.Time                      // its clock; nil: as usual
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
	t.Run("refused", func(t *testing.T) { f.testRefused(t) })
	t.Run("status", func(t *testing.T) { f.testStatus(t) })
	t.Run("check", func(t *testing.T) { f.testCheck(t) })
	t.Run("agents", func(t *testing.T) { f.testAgents(t) })
	t.Run("konnectivity", func(t *testing.T) { f.testKonnectivity(t) })
	t.Run("join", func(t *testing.T) { f.testJoin(t) })
	t.Run("steady", func(t *testing.T) { f.testSteady(t) })
	t.Run("renewal", func(t *testing.T) { f.testRenewal(t, tenant) })
	t.Run("age", func(t *testing.T) { f.testAge(t, tenant) })
	t.Run("age of konnectivity", func(t *testing.T) { f.testKonnectivityAge(t, tenant) })
	t.Run("endpoint", func(t *testing.T) { f.testEndpoint(t, tenant) })
	t.Run("versions", func(t *testing.T) { f.testVersions(t, tenant) })
	t.Run("old notes", func(t *testing.T) { f.testOldNotes(t, tenant) })
	t.Run("fixed", func(t *testing.T) { f.testFixed(t, tenant) })
	t.Run("Ready stays", func(t *testing.T) { f.testReadyStays(t, tenant) })
	t.Run("broken early", func(t *testing.T) { f.testBrokenEarly(t, tenant) })
	t.Run("rotation", func(t *testing.T) { f.testRotation(t, tenant) })
	t.Run("addons", func(t *testing.T) { f.testAddons(t, tenant) })
	t.Run("restart of the pod", func(t *testing.T) { f.testPodDeleted(t) })
	t.Run("adoption", func(t *testing.T) { f.testAdoption(t, tenant) })
	t.Run("second tenant", func(t *testing.T) { f.testSecond(t, tenant) })
	t.Run("removal", func(t *testing.T) { f.testRemoval(t, tenant) })
	t.Run("others' objects", func(t *testing.T) { f.testForeign(t, tenant) })
	t.Run("address", func(t *testing.T) { f.testAddressStays(t, tenant) })
	t.Run("rights", func(t *testing.T) { f.testRights(t) })
	t.Run("pods", func(t *testing.T) { f.testPods(t) })
	t.Run("rights in a tenant", func(t *testing.T) { f.testTenantRights(t) })
	t.Run("keys stay", func(t *testing.T) { f.testKeysStay(t) })
	t.Run("lost keys", func(t *testing.T) { f.testLostKeys(t, tenant) })
	t.Run("traces", func(t *testing.T) { f.testTraces(t, tenant) })
	t.Run("missing", func(t *testing.T) { f.testMissing(t) })
	t.Run("delete", func(t *testing.T) { f.testDelete(t, tenant) })
	t.Run("IPv6", func(t *testing.T) { f.testIPv6(t) })
	t.Run("dual-stack", func(t *testing.T) { f.testDualStack(t) })
	t.Run("rights used", func(t *testing.T) { f.testRightsUsed(t) })
}

// newFarm returns an admin cluster with a kubelet and a controller.
func newFarm(t *testing.T) *farm {
	f := newAdmin(t, "")
	f.startKubelet()
	f.start()
	t.Cleanup(func() { f.stop() })
	return f
}

// newAdmin starts an admin cluster, with drover's objects and rights, in a network namespace,
// or in that of the test.
func newAdmin(t *testing.T, n netns.Namespace) *farm {
	t.Helper()
	conf := controlplane.Config{Name: "admin", BinDir: buildcache.Programs(t), Dir: filepath.Join(t.TempDir(), "admin"), Log: t.Output(), Audit: true}
	if n != "" {
		conf.Exec = n.Command
	}
	admin, err := controlplane.Start(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Stop)
	f := &farm{t: t, net: n, admin: admin}
	f.people = kubernetes.NewForConfigOrDie(f.load(admin.Admin))
	for _, args := range []string{"create namespace " + namespace, "apply -f " + rbac, "apply --server-side -f " + crds, "wait --for=condition=Established --timeout=60s -f " + crds} {
		if _, err := admin.Kubectl(t.Context(), nil, strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	f.drover = filepath.Join(t.TempDir(), "drover.conf")
	if err := admin.WriteKubeconfig(f.drover, f.token(t, admin.Admin, "drover", "-n", namespace)); err != nil {
		t.Fatal(err)
	}
	f.restricted = f.load(f.drover)
	return f
}

// startKubelet runs the pods of tenant-a.
func (f *farm) startKubelet() {
	dir, err := os.MkdirTemp("/tmp", "k") // short: see kubelet.dir
	if err != nil {
		f.t.Fatal(err)
	}
	f.kubelet = &kubelet{
		t: f.t, client: f.people, namespace: namespace, tenant: "tenant-a", version: version, dir: dir, programs: map[string]string{},
		running: map[types.UID]*runningPod{},
	}
	if f.net != "" {
		f.kubelet.command, f.kubelet.dial = f.net.Command, f.net.Dial
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		f.kubelet.programs[name] = filepath.Join(f.admin.BinDir, name)
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
	f.controller = &tenants.Controller{
		Admin: func() (*rest.Config, error) { return f.restricted, nil }, Namespace: namespace, Identity: rand.Text(), OnStatus: f.onStatus, Now: f.now,
		RBAC: func(pools.Cluster) []byte { return deploy.Manifest(deploy.Rights{Approve: true}) },
		Log:  slog.New(slog.NewTextHandler(f.t.Output(), nil)),
	}
	if f.live != nil {
		f.followObjects()
	}
	if f.adminFile != "" {
		f.controller.Admin = tenants.AdminFile(f.adminFile)
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

// load reads a kubeconfig.
func (f *farm) load(file string) *rest.Config {
	f.t.Helper()
	conf, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		f.t.Fatal(err)
	}
	conf.QPS, conf.Burst = 100, 200
	if f.net != "" {
		conf.Dial = f.net.Dial
	}
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

// until waits until the status of a tenant is as wanted, in its object too if it has one, and
// returns it.
func (f *farm) until(tenant, what string, reached func(tenants.Status) bool) (s tenants.Status) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 3*time.Minute)
	defer cancel()
	fixture.Until(ctx, f.t, what, func() (bool, error) {
		s = f.controller.Statuses()[tenant]
		if !reached(s) || tenant != f.declared {
			return reached(s), fmt.Errorf("status %+v", s)
		}
		stored, err := f.stored(tenant)
		return err == nil && reached(stored), fmt.Errorf("in the object: status %+v, %w", stored, err)
	})
	return s
}

func (f *farm) ready(tenant, version string) tenants.Status {
	f.t.Helper()
	return f.until(tenant, "tenant ready in "+version, func(s tenants.Status) bool {
		c := s.Condition(tenants.Ready)
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
