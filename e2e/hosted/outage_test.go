package hosted_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/attack"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools/boots"
)

var outageLength = flag.Duration("outage", 0, "how long TestAdminDown keeps the admin cluster's API server down at least")

// outageConfig has a hosted tenant with a name of its API server.
const outageConfig = `server: {interfaces: [br0], address: 10.77.0.1, api: "127.0.0.1:8443", adminKubeconfig: admin.conf, objects: {namespace: farm}}
subnets: [{cidr: 10.77.0.0/16, router: 10.77.0.254, lease: 1h}]
tags: {all: {files: {/etc/secret: {content: "the secret of the tenant\n"}}}}
clusters: [{name: tenant-a, controlPlane: {version: v1.37.1, endpoint: {address: 10.231.0.2}, certSANs: [%s]}}]
pools: [{name: lobby, catchall: true, image: lab, range: 10.77.72.10-10.77.72.250, lease: 1h}]
`

const outageObjects = `{apiVersion: drover.dev/v1alpha1, kind: Pool, metadata: {name: b, namespace: farm}, spec: {image: lab, cluster: tenant-a}}
---
{apiVersion: drover.dev/v1alpha1, kind: Machine, metadata: {name: m2, namespace: farm}, spec: {pool: b, macs: ["52:54:00:77:01:02"], ip: %s}}
`

// outage is a farm whose machines are objects of an admin cluster, and whose tenant runs
// there. The server is the program drover.
type outage struct {
	*farm
	lab    *attack.Lab
	server *attack.Server
	tenant string // file of its administrator's kubeconfig
	pids   map[string]int

	lobby  *netns.Client // a machine that no node declares
	leased string        // its address
}

// TestAdminDown stops the admin cluster's API server. Declared machines boot and get the
// tokens of their tenants, leases go on, over a restart of drover too, and the tenant's
// control plane is not disturbed. When the API server is back, drover carries out a change
// that was made meanwhile, and follows the objects again.
func TestAdminDown(t *testing.T) {
	if !fixture.Must() {
		fixture.Missing(t, "kube-scheduler, konnectivity-server: set DROVER_E2E=1 to build them")
	}
	o := newOutage(t)
	o.wantEvent(t, o.boot(t, "10.77.1.20", true))
	o.lobby.Start(t)
	o.leased = o.lobby.Wait(t, netns.Bound)["address"]
	o.pids = o.running()

	fixture.Eventually(t, "drover keeps the control planes", o.leads)
	o.admin.StopServer()
	begin := time.Now()
	fixture.Eventually(t, "drover says that the admin cluster does not answer", func() bool {
		return strings.Contains(o.server.Ready(), "its API server does not answer")
	})
	fixture.Eventually(t, "drover has lost the Lease of the leader", func() bool { return !o.leads() })
	for again := true; again; again = time.Since(begin) < *outageLength {
		o.goesOn(t, true)
	}
	o.configure(t, "changed-meanwhile.example.org")
	o.server.Stop()
	o.server.Start()
	o.goesOn(t, false) // the credentials for the tenant are in a Secret
	down := time.Since(begin)
	since := begin.Add(down)

	if err := o.admin.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the change that was made meanwhile is carried out", func() bool {
		return slices.Contains(o.served().DNSNames, "changed-meanwhile.example.org")
	})
	fixture.Retry(t, "the Machine has the boot of the outage", func() error { return o.reported(t, begin, since) })
	o.declareMachine(t, "10.77.1.21")
	fixture.Eventually(t, "drover says that nothing is wrong", func() bool {
		ready := o.server.Ready()
		return ready != "" && !strings.Contains(ready, "does not answer")
	})
	o.boot(t, "10.77.1.21", true)
	if now := o.running(); !maps.Equal(now, o.pids) {
		t.Errorf("the tenant's processes were %v, and are %v", o.pids, now)
	}
	t.Logf("the API server was down for %s", down.Round(time.Second))
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	hostedPrograms(t)
	program := filepath.Join(t.TempDir(), "drover")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "drover/cmd/drover").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	o := &outage{lab: attack.NewLab(t, program)}
	o.lab.Net.IP(t, "addr", "add", address.String()+"/32", "dev", "lo")
	o.farm = newAdmin(t, o.lab.Net)
	o.startKubelet()
	o.lobby = &netns.Client{Kind: netns.Udhcpc(), Namespace: o.lab.Lobby, Device: "eth0", Dir: t.TempDir()}
	role := strings.ReplaceAll(fixture.ReadFile(t, "../../deploy/objects-rbac.yaml"), "namespace: drover", "namespace: "+namespace)
	o.apply(t, role)
	o.server = o.lab.NewServer(t, "", 1<<20)
	write(t, filepath.Join(o.server.Dir, "admin.conf"), fixture.ReadFile(t, o.drover))
	o.configure(t, "first.example.org")
	o.server.Start()
	o.declareMachine(t, "10.77.1.20")
	fixture.Retry(t, "the administrator's kubeconfig", func() error {
		_, err := o.admin.Kubectl(t.Context(), nil, "get", "secret", "tenant-a-admin", "tenant-a-kubeconfig", "-n", namespace)
		return err
	})
	o.tenant = o.file(t, "tenant-a-admin")
	return o
}

func (o *outage) apply(t *testing.T, manifest string) {
	t.Helper()
	if out, err := o.admin.Kubectl(t.Context(), strings.NewReader(manifest), "apply", "-f", "-"); err != nil {
		t.Fatal(out, err)
	}
}

// declareMachine makes the objects, or gives the Machine another address, and waits until
// they are in force.
func (o *outage) declareMachine(t *testing.T, ip string) {
	t.Helper()
	o.apply(t, fmt.Sprintf(outageObjects, ip))
	fixture.Retry(t, "the Machine is in force", func() error {
		out, err := o.admin.Kubectl(t.Context(), nil, "get", "machines.drover.dev", "m2", "-n", namespace,
			"-o", `jsonpath={.metadata.generation}{.status.observedGeneration}{.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && (len(out) != 6 || out[0] != out[1] || out[2:] != "True") {
			err = errors.New(out)
		}
		return err
	})
}

// configure writes the config, with a name of the tenant's API server.
func (o *outage) configure(t *testing.T, name string) {
	t.Helper()
	write(t, filepath.Join(o.server.Dir, "drover.yaml"), fmt.Sprintf(outageConfig, name))
}

// boot boots the declared machine, which gets an address, and with join the token of its
// tenant. The answer is the machine.
func (o *outage) boot(t *testing.T, ip string, join bool) *attack.Machine {
	t.Helper()
	m := &attack.Machine{Net: o.lab.Machine, MAC: attack.MachineMAC}
	if _, err := m.Boot(t); err != nil || m.Address != ip {
		t.Fatalf("m2 got the address %q, %v; want %s", m.Address, err, ip)
	}
	if !join {
		return m
	}
	fixture.Retry(t, "m2 may join", func() error {
		c, err := m.Join(t.Context())
		if err == nil && !strings.Contains(c.Kubeadm, "10.231.0.2:6443") {
			err = errors.New("it is for another cluster")
		}
		return err
	})
	return m
}

// wantEvent reports that a step of the boot of m2 failed, and waits until the Machine has an
// Event of it.
func (o *outage) wantEvent(t *testing.T, m *attack.Machine) {
	t.Helper()
	if err := m.Fail(t.Context(), boots.StepOnline, "no disk"); err != nil {
		t.Fatal(err)
	}
	fixture.Retry(t, "the Machine has an Event", func() error {
		out, err := o.admin.Kubectl(t.Context(), nil, "get", "events", "-n", namespace, "--field-selector", "involvedObject.kind=Machine,involvedObject.name=m2",
			"-o", "jsonpath={.items[*]['type','reason','message']}")
		if err == nil && out != "Warning BootFailed step online: no disk" {
			err = errors.New(out)
		}
		return err
	})
}

// goesOn checks what has to work while the admin cluster does not.
func (o *outage) goesOn(t *testing.T, join bool) {
	t.Helper()
	o.boot(t, "10.77.1.20", join)
	o.lobby.Renew(t)
	if got := o.lobby.Wait(t, netns.Renewed)["address"]; got != o.leased {
		t.Errorf("the lease of %s was renewed as %s", o.leased, got)
	}
	if out, err := o.admin.KubectlAs(t.Context(), o.tenant, nil, "get", "--raw", "/readyz"); err != nil || out != "ok" {
		t.Errorf("the tenant's API server: %q, %v", out, err)
	}
	if now := o.running(); !maps.Equal(now, o.pids) {
		t.Errorf("the tenant's processes were %v, and are %v", o.pids, now)
	}
}

// leads reports whether drover has said last that it keeps the control planes.
func (o *outage) leads() bool {
	log := o.server.Log()
	return strings.Count(log, `msg="reconciling tenant`) > strings.Count(log, `msg="stopped reconciling`)
}

// running returns the processes of the tenant's pod.
func (o *outage) running() map[string]int {
	pids := map[string]int{}
	for _, name := range []string{"etcd", "kube-apiserver", "konnectivity-server", "kube-controller-manager", "kube-scheduler"} {
		pids[name] = o.kubelet.pid(name)
	}
	return pids
}

// reported returns nil if the Machine's status has a boot of the outage.
func (o *outage) reported(t *testing.T, from, to time.Time) error {
	out, err := o.admin.Kubectl(t.Context(), nil, "get", "machines.drover.dev", "m2", "-n", namespace, "-o", "jsonpath={.status}")
	if err != nil {
		return err
	}
	var status struct {
		Step  string
		Since time.Time
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return err
	}
	if status.Step == "" || status.Since.Before(from.Truncate(time.Second)) || status.Since.After(to) {
		return fmt.Errorf("its status is %s, the outage was from %s to %s", out, from, to)
	}
	return nil
}
