package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/farm"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
)

// TestAdminCluster installs drover's chart in an admin cluster on this host, with a farm in
// the chart's values. The pod that results runs the control plane of a tenant, as another
// pod, and boots a machine into it. drover is not root there and has two capabilities. A new
// config is in force without a restart, values that are applied again change nothing, and
// after helm uninstall the state is still there. The tenant's API server reaches its node
// through konnectivity alone, and the node outlives the pod, and the tenant itself.
func TestAdminCluster(t *testing.T) {
	able(t)
	b, err := farm.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	f := openFarm(ctx, t, b, farm.Config{Name: "drover-e2e-admin", Volumes: 1})
	if err := f.Install(ctx, "testdata/admin.yaml"); err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "drover's log", inFarm(ctx, t, f, "logs", "deployment/drover"), lab.Bridge)
	wantUnprivileged(t, f)
	wantLeastRights(ctx, t, f)

	fixture.Until(ctx, t, "n1 is in the farm", func() (bool, error) {
		out, err := f.Drover(ctx, "node", "list")
		return strings.Contains(out, "n1"), err
	})
	g, err := f.PowerOn(lab.Machine{Name: "n1", Memory: 1536, NICs: []lab.NIC{{MAC: "52:54:00:77:01:01", Boot: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console of n1:\n%s", strings.Join(g.Tail(40), "\n"))
		}
	})
	tenant, err := f.Tenant(ctx, "tenant")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			tenant.Story(t.Output())
		}
	})
	upgradeDrover(ctx, t, f)
	wantManifests(ctx, t, f, tenant)
	fixture.Until(ctx, t, "n1 is Ready in its tenant", func() (bool, error) {
		n, err := site.NodeOf(ctx, tenant, "n1")
		return err == nil && n.Ready(), err
	})
	t.Logf("%.1f s after power-on", time.Since(g.Started).Seconds())
	wantApplied(ctx, t, f)
	wantKonnectivity(ctx, t, tenant)
	deleteControlPlane(ctx, t, f, tenant)
	adoptAgain(ctx, t, f, tenant)
	uninstallDrover(ctx, t, f, tenant)
}

// openFarm opens a farm, and closes it at the end of the test.
func openFarm(ctx context.Context, t *testing.T, b *farm.Built, c farm.Config) *farm.Farm {
	t.Helper()
	c.Dir = t.TempDir() + "/farm"
	f, err := b.Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			f.Story(t.Output())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// upgradeDrover changes the config by helm upgrade. The same pod has it in force.
func upgradeDrover(ctx context.Context, t *testing.T, f *farm.Farm) {
	t.Helper()
	pod := func() string {
		return inFarm(ctx, t, f, "get", "pods", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}")
	}
	was := pod()
	_, err := f.Helm(ctx, "upgrade", "drover", f.Chart(), "--namespace", farm.Namespace, "--values", "testdata/admin.yaml",
		"--set-json", `config.pools[0].nodes[0]={"name": "n2", "macs": ["52:54:00:77:01:02"], "ip": "10.77.0.22"}`)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "n2 is in the farm", func() (bool, error) {
		out, err := f.Drover(ctx, "node", "list")
		return strings.Contains(out, "n2"), err
	})
	if now := pod(); now != was {
		t.Errorf("the pod was %s, after an upgrade it is %s", was, now)
	}
}

// uninstallDrover uninstalls the chart, and with it the objects of its values. The state is
// still there, and so is the tenant: its keys, its volume, its pod, and its node.
func uninstallDrover(ctx context.Context, t *testing.T, f *farm.Farm, tenant *farm.Tenant) {
	t.Helper()
	ofTenant := func() string {
		return inFarm(ctx, t, f, "get", "statefulsets,pods,services,configmaps,networkpolicies,secrets,persistentvolumeclaims", "-l", "drover.dev/tenant=tenant",
			"-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`)
	}
	before := ofTenant()
	fixture.WantText(t, "what is of the tenant", before, "StatefulSet tenant-control-plane", "Pod tenant-control-plane-0", "Secret tenant-ca", "PersistentVolumeClaim data-tenant-control-plane-0")
	if _, err := f.Helm(ctx, "uninstall", "drover", "--namespace", farm.Namespace, "--wait"); err != nil {
		t.Fatal(err)
	}
	if out := inFarm(ctx, t, f, "get", "deployments,services,configmaps,roles,rolebindings,validatingadmissionpolicies,tenants.drover.dev", "-l", "app.kubernetes.io/name=drover", "-o", "name"); out != "" {
		t.Errorf("after helm uninstall there are %q", out)
	}
	fixture.Until(ctx, t, "drover has ended", func() (bool, error) {
		return inFarm(ctx, t, f, "get", "pods", "-l", "app.kubernetes.io/name=drover", "-o", "name") == "", nil
	})
	if after := ofTenant(); after != before {
		t.Errorf("of the tenant there was\n%sand after helm uninstall there is\n%s", before, after)
	}
	if n, err := site.NodeOf(ctx, tenant, "n1"); err != nil || !n.Ready() {
		t.Errorf("after helm uninstall n1 is Ready: %v, %v", n.Ready(), err)
	}
	for _, name := range []string{"api.token", "nodes.key"} {
		if info, err := os.Stat(filepath.Join(f.Data(), name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("after helm uninstall: %v, %v", info, err)
		}
	}
}

// inFarm runs kubectl in drover's namespace of the admin cluster.
func inFarm(ctx context.Context, t *testing.T, f *farm.Farm, args ...string) string {
	t.Helper()
	out, err := f.Kubectl(ctx, nil, append([]string{"--namespace", farm.Namespace}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// serverProcess returns the process id of drover in the rack's admin cluster, as the host
// counts.
func serverProcess(t *testing.T, f *farm.Farm) string {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, comm := range found {
		name, _ := os.ReadFile(comm)
		cgroups, _ := os.ReadFile(filepath.Join(filepath.Dir(comm), "cgroup"))
		if string(name) == "drover\n" && strings.Contains(string(cgroups), "/drover-"+f.Name+"/") {
			return filepath.Base(filepath.Dir(comm))
		}
	}
	t.Fatal("no process drover in the cgroups of the node")
	return ""
}

// wantUnprivileged fails the test unless drover has no more rights than the chart says.
func wantUnprivileged(t *testing.T, f *farm.Farm) {
	t.Helper()
	status := fixture.ReadFile(t, "/proc/"+serverProcess(t, f)+"/status")
	fixture.WantText(t, "the process", status,
		"\nUid:\t65532\t65532\t65532\t65532\n", "\nGid:\t65532\t65532\t65532\t65532\n",
		"\nCapInh:\t0000000000000000\n", "\nCapPrm:\t0000000000002400\n", "\nCapEff:\t0000000000002400\n",
		"\nCapBnd:\t0000000000002400\n", "\nCapAmb:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n")
}

// wantLeastRights fails the test unless drover may do in its namespace what the golden file
// lists, and in the others what any ServiceAccount may.
func wantLeastRights(ctx context.Context, t *testing.T, f *farm.Farm) {
	t.Helper()
	rights := func(account, namespace string) string {
		return inFarm(ctx, t, f, "auth", "can-i", "--list", "--no-headers", "--namespace", namespace, "--as=system:serviceaccount:"+farm.Namespace+":"+account,
			"--as-group=system:serviceaccounts", "--as-group=system:authenticated")
	}
	fixture.Golden(t, "testdata/admin-rights.txt", rights("drover", farm.Namespace))
	for _, namespace := range []string{"default", "kube-system"} {
		if got, want := rights("drover", namespace), rights("default", namespace); got != want {
			t.Errorf("in namespace %s drover may\n%s\nand any other account\n%s", namespace, got, want)
		}
	}
}
