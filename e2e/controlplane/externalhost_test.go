package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/pools"
	"drover/pools/config/externalhost"
)

const hostsRBAC = "../../deploy/hosts-rbac.yaml"

// hostNetwork is that of the tests: the 16 last of 256 networks of nodes are for hosts.
var hostNetwork = &pools.HostNetwork{
	CNI: pools.Flannel, PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"),
	HostPodCIDR: netip.MustParsePrefix("10.244.240.0/20"), NodeMask: 24, VNI: 1, Port: 8472, Domain: "cluster.local",
}

// TestExternalHosts has 200 hosts outside a cluster, declared as objects ExternalHost: their
// Nodes, their rights, the writes that they cost, that no node gets a network of theirs, and
// that nothing is left of them.
func TestExternalHosts(t *testing.T) {
	p, err := controlplane.Start(t.Context(), controlplane.Config{
		Name: "tenant", BinDir: buildcache.Programs(t), Dir: filepath.Join(t.TempDir(), "tenant"), RBAC: rbac, Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	if _, err := p.Kubectl(t.Context(), nil, "apply", "-f", hostsRBAC); err != nil {
		t.Fatal(err)
	}
	hosts := make([]pools.ExternalHost, 200)
	for i := range hosts {
		hosts[i] = pools.ExternalHost{Name: fmt.Sprintf("legacy%03d", i), Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), Size: externalhost.DefaultSize}
	}
	makeNodes(t, p, 0, 20)
	c := &kube.Clusters{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), StartLoops: true, Key: []byte("of the test")}
	t.Cleanup(c.Close)
	farm := hostFarm(t, p, c)
	set := func(hosts []pools.ExternalHost) { declare(t, p, farm, hosts) }
	set(hosts)
	t.Run("objects", func(t *testing.T) { testHostObjects(t, p, hosts) })
	t.Run("conditions", func(t *testing.T) { testHostConditions(t, p, farm) })
	t.Run("rights", func(t *testing.T) { testHostRights(t, p, c) })
	t.Run("advice", func(t *testing.T) { testHostAdvice(t, p) })
	t.Run("writes", func(t *testing.T) { testHostWrites(t, p, len(hosts)) })
	t.Run("mended", func(t *testing.T) { testHostMended(t, p, farm.changed) })
	t.Run("daemons", func(t *testing.T) { testHostDaemons(t, p) })
	t.Run("apart", func(t *testing.T) {
		set(hosts[5:])
		remove(t, c, p.Name, hosts[:5])
		testHostsApart(t, p, len(hosts)-5)
	})
	t.Run("rm", func(t *testing.T) {
		h, err := c.Hosts(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Remove(t.Context(), "legacy100"); err == nil || !strings.Contains(err.Error(), "is in the config") {
			t.Errorf("a host of the config: %v", err)
		}
		set(nil)
		if err := h.Remove(t.Context(), "node0"); err == nil || !strings.Contains(err.Error(), "is not that of a host") {
			t.Errorf("a real node: %v", err)
		}
		remove(t, c, p.Name, hosts[5:])
		for _, what := range []string{"nodes -l drover/external-host", "leases -n kube-node-lease", "serviceaccounts -n drover-hosts -l drover/external-host"} {
			out, err := p.Kubectl(t.Context(), nil, strings.Fields("get -o name "+what)...)
			if err != nil || strings.TrimSpace(out) != "" {
				t.Errorf("%s: %q, %v are left", what, out, err)
			}
		}
	})
	t.Run("gateway", func(t *testing.T) { testGateway(t, p, c) })
}

// remove removes hosts as drover host rm does.
func remove(t *testing.T, c *kube.Clusters, cluster string, hosts []pools.ExternalHost) {
	t.Helper()
	h, err := c.Hosts(cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		if err := h.Remove(t.Context(), host.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// makeNodes makes Nodes as kubelets do; the controller manager gives them networks.
func makeNodes(t *testing.T, p *controlplane.Cluster, from, to int) {
	t.Helper()
	var text strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: Node, metadata: {name: node%d, labels: {kubernetes.io/os: linux}}}\n", i)
	}
	if _, err := p.Kubectl(t.Context(), strings.NewReader(text.String()), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// nodeObject is the part of a Node that the tests read.
type nodeObject struct {
	Metadata struct {
		Name                string
		Labels, Annotations map[string]string
	}
	Spec struct {
		PodCIDR       netip.Prefix
		ProviderID    string
		Unschedulable bool
		Taints        []struct{ Key, Effect string }
	}
	Status struct {
		Addresses   []struct{ Type, Address string }
		Allocatable map[string]string
		Conditions  []struct{ Type, Status string }
	}
}

func (n *nodeObject) external() bool { return n.Metadata.Labels["drover/external-host"] == "true" }

func (n *nodeObject) ready() bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c struct{ Type, Status string }) bool { return c.Type == "Ready" && c.Status == "True" })
}

// items reads a list of objects.
func items[T any](ctx context.Context, p *controlplane.Cluster, args ...string) ([]T, error) {
	out, err := p.Kubectl(ctx, nil, append([]string{"get", "-o", "json"}, args...)...)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []T }
	return list.Items, json.Unmarshal([]byte(out), &list)
}

func testHostObjects(t *testing.T, p *controlplane.Cluster, hosts []pools.ExternalHost) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	fixture.Until(ctx, t, "all hosts have Nodes, Leases and ServiceAccounts", func() (bool, error) {
		leases, err1 := items[struct{}](t.Context(), p, "leases", "-n", "kube-node-lease", "-l", "drover/external-host")
		accounts, err2 := items[struct{}](t.Context(), p, "serviceaccounts", "-n", "drover-hosts", "-l", "drover/external-host")
		if len(leases) != len(hosts)+1 || len(accounts) != len(hosts) { // one Lease is that of the range
			return false, errors.Join(err1, err2, fmt.Errorf("%d Leases, %d ServiceAccounts", len(leases), len(accounts)))
		}
		return true, nil
	})
	all, err := items[*nodeObject](t.Context(), p, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*nodeObject{}
	for _, n := range all {
		byName[n.Metadata.Name] = n
	}
	if n := byName[externalhost.RangeName]; n == nil || n.Spec.PodCIDR != hostNetwork.HostPodCIDR {
		t.Errorf("the Node of the range: %+v", n)
	}
	for _, h := range hosts {
		n := byName[h.Name]
		if n == nil {
			t.Errorf("no Node %q", h.Name)
			continue
		}
		has := func(effect string) bool {
			return slices.Contains(n.Spec.Taints, struct{ Key, Effect string }{"drover/external-host", effect})
		}
		_, os := n.Metadata.Labels["kubernetes.io/os"]
		if !n.external() || !n.Spec.Unschedulable || !has("NoSchedule") || !has("NoExecute") || os || n.Status.Allocatable["pods"] != "0" || !n.ready() ||
			n.Spec.ProviderID != "drover://tenant/"+h.Name || n.Metadata.Annotations["flannel.alpha.coreos.com/public-ip-overwrite"] != h.Address.String() ||
			len(n.Status.Addresses) == 0 || n.Status.Addresses[0].Address != h.Address.String() || n.Spec.PodCIDR.Bits() != 28 {
			t.Errorf("host %q: %+v", h.Name, n)
		}
	}
	checkApart(t, all)
}

// checkApart checks that no two Nodes have networks that overlap, and that those of hosts
// alone are in the range.
func checkApart(t *testing.T, all []*nodeObject) {
	t.Helper()
	for i, n := range all {
		if n.Metadata.Name == externalhost.RangeName || !n.Spec.PodCIDR.IsValid() {
			continue
		}
		if inside := hostNetwork.HostPodCIDR.Overlaps(n.Spec.PodCIDR); inside != n.external() {
			t.Errorf("%q has %s", n.Metadata.Name, n.Spec.PodCIDR)
		}
		for _, o := range all[:i] {
			if o.Metadata.Name != externalhost.RangeName && o.Spec.PodCIDR.IsValid() && o.Spec.PodCIDR.Overlaps(n.Spec.PodCIDR) {
				t.Errorf("%q has %s, %q has %s", n.Metadata.Name, n.Spec.PodCIDR, o.Metadata.Name, o.Spec.PodCIDR)
			}
		}
	}
}

// testHostWrites compares the times that drover has written into the Leases of all hosts:
// none is within ten seconds of the one before, and drover writes nothing else.
func testHostWrites(t *testing.T, p *controlplane.Cluster, hosts int) {
	type object struct {
		Metadata struct {
			Name          string
			ManagedFields []struct {
				Manager string
				Time    time.Time
			}
		}
		Spec struct{ RenewTime time.Time }
	}
	renewed := map[string][]time.Time{}
	written := func() map[string]time.Time {
		all, err := items[object](t.Context(), p, "nodes", "-l", "drover/external-host")
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]time.Time{}
		for _, n := range all {
			for _, f := range n.Metadata.ManagedFields {
				if f.Manager == "drover" && f.Time.After(last[n.Metadata.Name]) {
					last[n.Metadata.Name] = f.Time
				}
			}
		}
		return last
	}
	before := written()
	fixture.Until(t.Context(), t, "each Lease is renewed three times", func() (bool, error) {
		leases, err := items[object](t.Context(), p, "leases", "-n", "kube-node-lease", "-l", "drover/external-host")
		if err != nil {
			return false, err
		}
		for _, l := range leases {
			times := renewed[l.Metadata.Name]
			if len(times) == 0 || !times[len(times)-1].Equal(l.Spec.RenewTime) {
				renewed[l.Metadata.Name] = append(times, l.Spec.RenewTime)
			}
		}
		done := 0
		for _, times := range renewed {
			if len(times) > 3 {
				done++
			}
		}
		return done == hosts+1, fmt.Errorf("%d of %d", done, hosts+1)
	})
	for name, times := range renewed {
		for i := range times[1:] {
			if d := times[i+1].Sub(times[i]); d < 10*time.Second {
				t.Errorf("Lease %q: written twice within %v", name, d)
			}
		}
	}
	if after := written(); !maps.Equal(before, after) {
		t.Errorf("drover has written Nodes meanwhile: %v, then %v", before, after)
	}
}

// testHostMended takes a Node of a host apart, as a person may.
func testHostMended(t *testing.T, p *controlplane.Cluster, check func()) {
	for _, args := range []string{
		"taint node legacy001 drover/external-host-", "uncordon legacy001", "annotate node legacy001 flannel.alpha.coreos.com/public-ip-overwrite- person=me",
		"delete serviceaccount legacy001 -n drover-hosts", "delete node legacy002",
	} {
		if _, err := p.Kubectl(t.Context(), nil, strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	check()
	fixture.Retry(t, "both hosts are as before", func() error {
		all, err := items[*nodeObject](t.Context(), p, "nodes", "legacy001", "legacy002")
		if err != nil {
			return err
		}
		if n := all[0]; !n.Spec.Unschedulable || len(n.Spec.Taints) < 2 || n.Metadata.Annotations["person"] != "me" || n.Metadata.Annotations["flannel.alpha.coreos.com/public-ip-overwrite"] == "" {
			return fmt.Errorf("%+v", n)
		}
		_, err = p.Kubectl(t.Context(), nil, "get", "serviceaccount", "legacy001", "-n", "drover-hosts")
		return err
	})
}

// testHostDaemons makes DaemonSets: one that tolerates all taints and selects Linux, as
// kube-proxy and CNIs do, and one that tolerates nothing.
func testHostDaemons(t *testing.T, p *controlplane.Cluster) {
	const daemons = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: %s, namespace: default}, spec: {selector: {matchLabels: {app: %[1]s}},
  template: {metadata: {labels: {app: %[1]s}}, spec: {%s containers: [{name: x, image: x}]}}}}
---
`
	text := fmt.Sprintf(daemons, "linux", "tolerations: [{operator: Exists}], nodeSelector: {kubernetes.io/os: linux},") + fmt.Sprintf(daemons, "plain", "")
	if _, err := p.Kubectl(t.Context(), strings.NewReader(text), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	type daemonSet struct {
		Metadata struct {
			Name       string
			Generation int
		}
		Status struct{ DesiredNumberScheduled, CurrentNumberScheduled, ObservedGeneration int }
	}
	fixture.Retry(t, "DaemonSets have pods for nodes alone", func() error {
		all, err := items[daemonSet](t.Context(), p, "daemonsets", "-n", "default")
		if err != nil {
			return err
		}
		for _, d := range all {
			if s := d.Status; s.ObservedGeneration == 0 || s.CurrentNumberScheduled != s.DesiredNumberScheduled || d.Metadata.Name == "linux" && s.DesiredNumberScheduled != 20 {
				return fmt.Errorf("%+v, want 20 pods at most", d)
			}
		}
		return nil
	})
	const nodeOfPod = `jsonpath={range .items[*]}{.metadata.labels.app} {.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]}{"\n"}{end}`
	pods, err := p.Kubectl(t.Context(), nil, "get", "pods", "-n", "default", "-o", nodeOfPod)
	if err != nil || strings.Count(pods, "linux node") != 20 || strings.Contains(pods, "legacy") || strings.Contains(pods, "drover-host-range") {
		t.Errorf("%v: pods are for\n%s", err, pods)
	}
	if _, err := p.Kubectl(t.Context(), nil, "delete", "daemonset", "linux", "plain", "-n", "default"); err != nil {
		t.Fatal(err)
	}
}

// testHostsApart makes more nodes than there are networks for. Hosts have been removed,
// whose networks the controller manager has freed.
func testHostsApart(t *testing.T, p *controlplane.Cluster, hosts int) {
	makeNodes(t, p, 20, 245)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var all []*nodeObject
	fixture.Until(ctx, t, "240 nodes have all networks outside of the range", func() (bool, error) {
		var err error
		if all, err = items[*nodeObject](ctx, p, "nodes"); err != nil {
			return false, err
		}
		nodes, externals := 0, 0
		for _, n := range all {
			switch {
			case n.external():
				externals++
			case n.Spec.PodCIDR.IsValid():
				nodes++
			}
		}
		if nodes < 240 || externals != hosts+1 {
			return false, fmt.Errorf("%d nodes and %d hosts", nodes, externals)
		}
		return true, nil
	})
	checkApart(t, all)
}
