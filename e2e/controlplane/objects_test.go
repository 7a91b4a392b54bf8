package controlplane_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube/cluster"
	"drover/kube/objects"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/declared"
	"drover/pools/resolve"
)

const (
	crds      = "../../deploy/charts/drover/crds"
	adminRBAC = "../../deploy/objects-rbac.yaml"
)

// oneObject is a manifest of one object in the namespace drover.
func oneObject(place, spec string) string {
	kind, name, _ := strings.Cut(place, " ")
	return fmt.Sprintf("{apiVersion: drover.dev/v1alpha1, kind: %s, metadata: {name: %s, namespace: drover}, spec: %s}", kind, name, spec)
}

// site is a farm with objects, as drover serve has it.
type site struct {
	t       *testing.T // that outlives the parts of the test
	live    *config.Live
	watcher *objects.Watcher
	admin   string // kubeconfig
	file    string // of the stored objects
	config  string // the config file; default siteConfig
	changed func() // after other objects were put in force; may be nil
	host    func(cluster, name string) (netip.Prefix, error)

	mu   sync.Mutex
	boot pools.MachineStatus
}

// noNodes is a store without nodes.
type noNodes struct{}

func (noNodes) Nodes() ([]pools.PoolNode, error)             { return nil, nil }
func (noNodes) ChangeNodes([]pools.PoolNode, []string) error { return nil }

const siteConfig = `server: {interfaces: [lo], address: 10.28.0.2, objects: {namespace: drover}}
subnets: [{cidr: 10.28.0.0/16}]
tags: {quiet: {kernelArgs: quiet}}
`

// start reads the config, with the objects that were stored, and follows the objects.
func (s *site) start() (stop func()) {
	t := s.t
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(path, []byte(cmp.Or(s.config, siteConfig)), 0o600); err != nil {
		t.Fatal(err)
	}
	last, err := declared.Load(s.file, "drover")
	if err != nil {
		t.Fatal(err)
	}
	if s.live, err = config.NewLive(config.Source{File: path}, noNodes{}, last...); err != nil {
		t.Fatal(err)
	}
	s.watcher = &objects.Watcher{
		Cluster: cluster.NewAdmin(s.admin, time.Now), Namespace: "drover", Farm: s.live, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Machine: func(string) pools.MachineStatus {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.boot
		},
		Changed: func(c declared.Choice) {
			if err := declared.Save(s.file, "drover", c.InForce); err != nil {
				t.Error(err)
			}
			if s.changed != nil {
				s.changed()
			}
		},
		Host: s.host,
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	watcher := s.watcher
	running.Go(func() { _ = watcher.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// plan returns what the machine with that last byte of its MAC gets.
func (s *site) plan(last byte) *resolve.Plan {
	return s.live.Farm().Resolve(resolve.Query{MAC: pools.MAC{0x52, 0x54, 0, 0, 1, last}, Firmware: pools.BIOS})
}

// boots waits until a machine gets the image; "": nothing.
func (s *site) boots(t *testing.T, last byte, image string) {
	t.Helper()
	fixture.Retry(t, fmt.Sprintf("machine %d boots %q", last, image), func() error {
		got := ""
		if p := s.plan(last); p != nil {
			got = p.Image
		}
		if got != image {
			return fmt.Errorf("it boots %q", got)
		}
		return nil
	})
}

// testObjects: the CustomResourceDefinitions are accepted, their rules refuse mistakes, and
// a farm follows the objects with the rights of deploy/objects-rbac.yaml.
func testObjects(t *testing.T, p *controlplane.Cluster) {
	for _, args := range []string{"create --dry-run=server -f " + crds, "apply --server-side -f " + crds, "wait --for=condition=Established --timeout=60s -f " + crds, "create namespace drover", "apply -f " + adminRBAC} {
		if out, err := p.Kubectl(t.Context(), nil, strings.Fields(args)...); err != nil {
			t.Fatalf("kubectl %s: %s, %v", args, out, err)
		}
	}
	t.Run("schema", func(t *testing.T) { testSchema(t, p) })
	t.Run("rights", func(t *testing.T) { testObjectRights(t, p) })
	h := newHole(t, p.Endpoint())
	s := &site{t: t, admin: h.throughAs(t, p, account(t, p, "drover", "")), file: filepath.Join(t.TempDir(), "objects.json")}
	stop := s.start()
	t.Run("conditions", func(t *testing.T) { testConditions(t, p, s) })
	t.Run("again", func(t *testing.T) { testAppliedAgain(t, p, s) })
	t.Run("boot", func(t *testing.T) { testBootStatus(t, p, s) })
	t.Run("down", func(t *testing.T) { stop = testAdminDown(t, p, s, h, stop) })
	t.Run("deleted", func(t *testing.T) {
		if _, err := p.Kubectl(t.Context(), nil, "delete", "pools.drover.dev,machines.drover.dev,tenants.drover.dev,tags.drover.dev", "--all", "-n", "drover"); err != nil {
			t.Fatal(err)
		}
		s.boots(t, 1, "")
	})
	stop()
}

// testObjectRights: drover may do what the Role says, and nothing else.
func testObjectRights(t *testing.T, p *controlplane.Cluster) {
	kubeconfig := account(t, p, "drover", "")
	for want, all := range map[string][]string{
		"yes": {"list machines.drover.dev", "watch tenants.drover.dev", "patch machines.drover.dev --subresource=status", "create events"},
		"no": {
			"create machines.drover.dev", "update machines.drover.dev", "patch machines.drover.dev", "delete tenants.drover.dev", "get secrets", "list secrets", "get configmaps",
			"create pods", "get pods", "create leases.coordination.k8s.io", "delete events", "create serviceaccounts --subresource=token", "escalate roles.rbac.authorization.k8s.io",
			"patch customresourcedefinitions.apiextensions.k8s.io",
		},
	} {
		for _, what := range all {
			args := append([]string{"auth", "can-i", "-n", "drover"}, strings.Fields(what)...)
			if out, _ := p.KubectlAs(t.Context(), kubeconfig, nil, args...); !strings.HasPrefix(out, want) && (want != "no" || out != "") {
				t.Errorf("%s: %q, want %s", what, out, want)
			}
		}
	}
	if out, err := p.KubectlAs(t.Context(), kubeconfig, nil, "get", "machines.drover.dev", "-n", "default"); err == nil {
		t.Errorf("another namespace: %q", out)
	}
}

// condition waits until a condition of an object is as wanted: True, or False with words.
func condition(t *testing.T, p *controlplane.Cluster, place, kind, want string) {
	t.Helper()
	kindOf, name, _ := strings.Cut(place, " ")
	fixture.Retry(t, fmt.Sprintf("%s of %s is %q", kind, place, want), func() error {
		out, err := p.Kubectl(t.Context(), nil, "get", kindOf+".drover.dev", name, "-n", "drover", "-o",
			fmt.Sprintf(`jsonpath={.status.observedGeneration}={.metadata.generation} {.status.conditions[?(@.type=="%[1]s")].status} {.status.conditions[?(@.type=="%[1]s")].message}`, kind))
		if err != nil {
			return err
		}
		var seen, newest int
		if _, err := fmt.Sscanf(out, "%d=%d", &seen, &newest); err != nil || seen != newest || !strings.Contains(out, want) {
			return fmt.Errorf("it is %q", out)
		}
		return nil
	})
}

// hostedTenant: Ready of a hosted tenant is of its controller, and the object is observed once that
// has seen it.
func hostedTenant(t *testing.T, p *controlplane.Cluster) {
	t.Helper()
	status := func() string {
		out, err := p.Kubectl(t.Context(), nil, "get", "tenants.drover.dev", "hosted", "-n", "drover", "-o",
			`jsonpath={.status.conditions[?(@.type=="Accepted")].status} {.status.observedGeneration} {.status.conditions[?(@.type=="Ready")].status}`)
		if err != nil {
			return err.Error()
		}
		return out
	}
	fixture.Eventually(t, "the hosted tenant is accepted", func() bool { return strings.HasPrefix(status(), "True") })
	if got := status(); got != "True  " {
		t.Errorf("without a controller: %q, want it accepted, and neither observed nor Ready", got)
	}
	const ready = `{"apiVersion": "drover.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": "hosted"}, "status": {"conditions": [
		{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`
	if out, err := p.Kubectl(t.Context(), strings.NewReader(ready), "apply", "--server-side", "--field-manager=drover-tenants", "--subresource=status", "-n", "drover", "-f", "-"); err != nil {
		t.Fatal(out, err)
	}
	fixture.Eventually(t, "the hosted tenant is observed", func() bool { return status() == "True 1 True" })
	apply(t, p, oneObject("Tenant hosted", `{controlPlane: {version: v1.37.1, certSANs: [no_name!]}}`))
	condition(t, p, "Tenant hosted", "Ready", `"no_name!" is neither a host name nor an address`)
	condition(t, p, "Tenant hosted", "Ready", "Generation 1 stays in force.")
	apply(t, p, oneObject("Tenant hosted", `{controlPlane: {version: v1.37.1}}`))
	fixture.Eventually(t, "the hosted tenant is accepted again, and not yet observed", func() bool { return status() == "True 2 False" })
}

// testConditions: wrong objects beside right ones.
func testConditions(t *testing.T, p *controlplane.Cluster, s *site) {
	apply(t, p, strings.Join([]string{
		oneObject("Machine m1", `{pool: web, macs: ["52:54:00:00:01:01"], ip: 10.28.0.11}`),
		oneObject("Pool web", `{image: debian-12, tags: [quiet, serial]}`),
		oneObject("Tag serial", `{kernelArgs: "console=ttyS0"}`),
		oneObject("Machine m2", `{pool: wbe, macs: ["52:54:00:00:01:02"], ip: 10.28.0.12}`),
		oneObject("Tenant hosted", `{controlPlane: {version: v1.37.1}}`),
		oneObject("Tenant a", `{kubeconfig: secrets/a.kubeconfig}`),
		oneObject("Subnet other", `{cidr: 10.29.0.0/16, router: 10.29.0.1}`),
		oneObject("Chassis c1", `{address: ilo.example.org, passwordFile: c1.pass, pool: web}`),
	}, "\n---\n"))
	s.boots(t, 1, "debian-12")
	if got := strings.Join(s.plan(1).KernelArgs, " "); got != "quiet console=ttyS0" {
		t.Errorf("kernel arguments %q", got)
	}
	for _, place := range []string{"Machine m1", "Pool web", "Tag serial", "Tenant a", "Subnet other", "Chassis c1"} {
		condition(t, p, place, "Accepted", "True")
		condition(t, p, place, "Ready", "True")
	}
	hostedTenant(t, p)
	condition(t, p, "Machine m2", "Ready", `False node "m2": unknown pool "wbe" (did you mean "web"?)`)

	// The last good version stays in force, and the mended one takes its place.
	apply(t, p, oneObject("Pool web", `{image: debian-13, tags: [quiet, serail]}`))
	condition(t, p, "Pool web", "Accepted", `False pool "web": unknown tag "serail" (did you mean "serial"?)`)
	condition(t, p, "Pool web", "Ready", "Generation 1 stays in force.")
	s.boots(t, 1, "debian-12")
	apply(t, p, oneObject("Pool web", `{image: debian-13, tags: [quiet, serial]}`))
	s.boots(t, 1, "debian-13")
	condition(t, p, "Pool web", "Ready", "True")
	if len(s.watcher.Problems()) != 1 {
		t.Errorf("problems: %v, want that of m2", s.watcher.Problems())
	}
}

// generations returns name, generation and resource version of all objects.
func generations(t *testing.T, p *controlplane.Cluster) string {
	t.Helper()
	out, err := p.Kubectl(t.Context(), nil, "get", "drover", "-n", "drover", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation} {.metadata.resourceVersion}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// testAppliedAgain: what is applied twice changes nothing, and drover writes no status that
// is there.
func testAppliedAgain(t *testing.T, p *controlplane.Cluster, s *site) {
	const manifest = `{pool: web, macs: ["52:54:00:00:01:01"], ip: 10.28.0.11}`
	before := generations(t, p)
	apply(t, p, oneObject("Machine m1", manifest))
	if out, err := p.Kubectl(t.Context(), strings.NewReader(oneObject("Machine m1", manifest)), "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		t.Fatal(out, err)
	}
	s.watcher.Refresh()
	// A change of another object passes through all that a needless write would.
	apply(t, p, oneObject("Tag other", `{kernelArgs: other}`))
	condition(t, p, "Tag other", "Ready", "True")
	if _, err := p.Kubectl(t.Context(), nil, "delete", "tags.drover.dev", "other", "-n", "drover"); err != nil {
		t.Fatal(err)
	}
	strip := func(text string) string { // server-side apply becomes an owner of fields of m1, which is a new version
		var lines []string
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) == 4 && f[1] == "m1" {
				line = strings.Join(f[:3], " ") + "\n"
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "")
	}
	if after := generations(t, p); strip(after) != strip(before) {
		t.Errorf("got %s, want %s", after, before)
	}
}

// testBootStatus: a Machine has its boot in its status, and an Event tells when it fails.
func testBootStatus(t *testing.T, p *controlplane.Cluster, s *site) {
	s.mu.Lock()
	s.boot = pools.MachineStatus{Step: "ready", Since: time.Unix(1790000000, 0).UTC(), Address: "10.28.0.11", Image: "debian-13", ImageGeneration: "abc", Tenant: "a", Node: "m1"}
	s.mu.Unlock()
	for range 100 {
		s.watcher.Booted("m1")
		s.watcher.Booted("nobody")
	}
	s.watcher.Warn("m1", "boot-1", objects.BootFailed, "step image: no space\nleft")
	s.watcher.Warn("m1", "boot-1", objects.BootFailed, "step image: no space\nleft")
	s.watcher.Warn("nobody", "boot-1", objects.BootFailed, "x")
	var m struct{ Status pools.MachineStatus }
	fixture.Retry(t, "the boot in the status", func() error {
		out, err := p.Kubectl(t.Context(), nil, "get", "machines.drover.dev", "m1", "-n", "drover", "-o", "json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &m)
		}
		if err == nil && m.Status.Step != "ready" {
			err = fmt.Errorf("got %+v", m.Status)
		}
		return err
	})
	if want := (pools.MachineStatus{ObjectStatus: m.Status.ObjectStatus, Step: "ready", Since: time.Unix(1790000000, 0).UTC(), Address: "10.28.0.11", Image: "debian-13", ImageGeneration: "abc", Tenant: "a", Node: "m1"}); fmt.Sprint(m.Status) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", m.Status, want)
	}
	fixture.Retry(t, "the Event", func() error {
		out, err := p.Kubectl(t.Context(), nil, "get", "events", "-n", "drover", "-o", `jsonpath={range .items[*]}{.involvedObject.kind} {.involvedObject.name} {.reason} {.message}{"\n"}{end}`)
		if err == nil && strings.TrimSpace(out) != `Machine m1 BootFailed step image: no space left` {
			err = fmt.Errorf("got %q", out)
		}
		return err
	})
	// What was said is not said again, even if the Event has gone.
	if _, err := p.Kubectl(t.Context(), nil, "delete", "events", "--all", "-n", "drover"); err != nil {
		t.Fatal(err)
	}
	s.watcher.Warn("m1", "boot-1", objects.BootFailed, "step image: no space\nleft")
	s.watcher.Warn("m1", "boot-1", objects.BootStuck, "no progress")
	fixture.Retry(t, "the Event of another text alone", func() error {
		out, err := p.Kubectl(t.Context(), nil, "get", "events", "-n", "drover", "-o", `jsonpath={range .items[*]}{.reason}{"\n"}{end}`)
		if err == nil && strings.TrimSpace(out) != objects.BootStuck {
			err = fmt.Errorf("got %q", out)
		}
		return err
	})
	out, err := p.Kubectl(t.Context(), nil, "get", "machines.drover.dev", "-n", "drover")
	fixture.WantText(t, "kubectl get", fmt.Sprint(out, err), "POOL", "STEP", "SINCE", "READY", "ready")
}

// testAdminDown: while the API server does not answer, what was in force stays so, over a
// restart, too; when it is back, the farm follows.
func testAdminDown(t *testing.T, p *controlplane.Cluster, s *site, h *hole, stop func()) func() {
	h.turn(true)
	apply(t, p, oneObject("Pool web", `{image: debian-14, tags: [quiet, serial]}`))
	fixture.Eventually(t, "the outage is noticed", func() bool { return s.watcher.Problems()["admin cluster"] != "" })
	s.boots(t, 1, "debian-13")
	stop()
	stop = s.start()
	s.boots(t, 1, "debian-13")
	h.turn(false)
	s.boots(t, 1, "debian-14")
	condition(t, p, "Pool web", "Ready", "True")
	return stop
}
