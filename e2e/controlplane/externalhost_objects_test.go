package controlplane_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/externalhost/bundle"
	"drover/kube/inspect"
	"drover/pools"
	"drover/pools/config"
)

// hostFarm runs a farm whose hosts are objects of the cluster.
func hostFarm(t *testing.T, p *controlplane.Cluster, c *kube.Clusters) *site {
	t.Helper()
	for _, args := range []string{"apply --server-side -f " + crds, "wait --for=condition=Established --timeout=60s -f " + crds, "create namespace drover", "apply -f " + adminRBAC} {
		if out, err := p.Kubectl(t.Context(), nil, strings.Fields(args)...); err != nil {
			t.Fatalf("kubectl %s: %s, %v", args, out, err)
		}
	}
	n := hostNetwork
	s := &site{
		t: t, admin: account(t, p, "drover", ""), file: filepath.Join(t.TempDir(), "objects.json"),
		config: siteConfig + fmt.Sprintf("clusters: [{name: %s, kubeconfig: %q, hostNetwork: {podCIDR: %s, serviceCIDR: %s, hostPodCIDR: %s}}]\n", p.Name, p.Client, n.PodCIDR, n.ServiceCIDR, n.HostPodCIDR),
		host: func(cluster, name string) (netip.Prefix, error) {
			h, err := c.Hosts(cluster)
			if err != nil {
				return netip.Prefix{}, err
			}
			return h.State(name)
		},
	}
	s.changed = func() { c.Set(s.live.Farm().Clusters()) }
	t.Cleanup(s.start())
	return s
}

// declare makes hosts objects, and removes all others; the farm follows.
func declare(t *testing.T, p *controlplane.Cluster, farm *site, hosts []pools.ExternalHost) {
	t.Helper()
	var text strings.Builder
	for _, h := range hosts {
		fmt.Fprintln(&text, "---\n"+oneObject("ExternalHost "+h.Name, fmt.Sprintf("{cluster: %s, address: %s}", p.Name, h.Address)))
	}
	there, err := p.Kubectl(t.Context(), nil, "get", "externalhosts.drover.dev", "-n", "drover", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	gone := slices.DeleteFunc(strings.Fields(there), func(name string) bool {
		return slices.ContainsFunc(hosts, func(h pools.ExternalHost) bool { return h.Name == name })
	})
	if len(gone) > 0 {
		_, err = p.Kubectl(t.Context(), nil, append([]string{"delete", "externalhosts.drover.dev", "-n", "drover"}, gone...)...)
	}
	if err == nil && len(hosts) > 0 {
		_, err = p.Kubectl(t.Context(), strings.NewReader(text.String()), "apply", "--server-side", "-f", "-")
	}
	if err != nil {
		t.Fatal(err)
	}
	fixture.Retry(t, fmt.Sprintf("the farm has %d hosts", len(hosts)), func() error {
		if got := farm.live.Farm().Config.Clusters[0].Hosts; !slices.EqualFunc(got, hosts, func(a, b pools.ExternalHost) bool { return a.Name == b.Name && a.Address == b.Address }) {
			return fmt.Errorf("it has %d", len(got))
		}
		return nil
	})
}

// testHostConditions: each ExternalHost is Ready and has the network of its Node; wrong ones
// say why, and the others stay.
func testHostConditions(t *testing.T, p *controlplane.Cluster, farm *site) {
	wrong := []string{
		oneObject("ExternalHost lost", "{cluster: tenent, address: 192.0.2.250}"),
		oneObject("ExternalHost twin", "{cluster: tenant, address: 192.0.2.7}"),
		oneObject("ExternalHost wide", "{cluster: tenant, address: 192.0.2.251, podCIDRSize: 16}"),
	}
	if _, err := p.Kubectl(t.Context(), strings.NewReader(strings.Join(wrong, "\n---\n")), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	condition(t, p, "ExternalHost lost", "Accepted", `False host "lost": unknown cluster "tenent" (did you mean "tenant"?)`)
	condition(t, p, "ExternalHost twin", "Ready", `192.0.2.7 is there twice`)
	condition(t, p, "ExternalHost wide", "Accepted", `16 is not from 24 to 30`)
	if _, err := p.Kubectl(t.Context(), nil, "delete", "externalhosts.drover.dev", "-n", "drover", "lost", "twin", "wide"); err != nil {
		t.Fatal(err)
	}
	networks := func(kind, path string) string {
		out, err := p.Kubectl(t.Context(), nil, "get", kind, "-A", "--sort-by=.metadata.name", "-o", `jsonpath={range .items[*]}{.metadata.name} {`+path+`}{"\n"}{end}`)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	fixture.Retry(t, "all hosts are Ready, with their networks", func() error {
		farm.watcher.Refresh()
		ready := networks("externalhosts.drover.dev", `.status.conditions[?(@.type=="Ready")].status`)
		if n := strings.Count(ready, " True\n"); n != 200 {
			return fmt.Errorf("%d are", n)
		}
		objects, nodes := networks("externalhosts.drover.dev", ".status.podCIDR"), networks("nodes", ".spec.podCIDR")
		for line := range strings.Lines(objects) {
			if !strings.Contains(nodes, line) {
				return fmt.Errorf("an object has %q, and the Nodes have\n%s", line, nodes)
			}
		}
		return nil
	})
	out, err := p.Kubectl(t.Context(), nil, "get", "externalhosts.drover.dev", "-n", "drover", "legacy000")
	fixture.WantText(t, "kubectl get", fmt.Sprint(out, err), "TENANT", "ADDRESS", "PODCIDR", "READY", "192.0.2.1", "/28")
	if problems := farm.watcher.Problems(); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

// testHostAdvice: with many endpoints drover cluster check advises nftables and Headless
// Services, with drover's own rights.
func testHostAdvice(t *testing.T, p *controlplane.Cluster) {
	check := func(mode pools.ProxyMode) (found inspect.Finding) {
		network := *hostNetwork
		network.ProxyMode = mode
		c := &kube.Clusters{}
		c.Set([]pools.Cluster{{Name: p.Name, Kubeconfig: p.Client, HostNetwork: &network}})
		defer c.Close()
		all, err := c.Inspect(t.Context(), p.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if strings.HasPrefix(f.What, "drover's rights") && !f.OK {
				t.Error(f)
			}
			if f.What == "Services" {
				found = f
			}
		}
		return found
	}
	if f := check(pools.ProxyIPTables); !f.OK || f.Advice || !strings.Contains(f.Detail, " endpoints for kube-proxy on hosts") {
		t.Errorf("with the API server alone: %+v", f)
	}
	endpoints := make([]string, 100)
	for i := range endpoints {
		endpoints[i] = fmt.Sprintf("{addresses: [10.244.1.%d]}", i+1)
	}
	var text strings.Builder
	for i := range 150 {
		fmt.Fprintf(&text, "---\n{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: many-%d, labels: {kubernetes.io/service-name: many}}, addressType: IPv4, ports: [{port: 80}], endpoints: [%s]}\n", i, strings.Join(endpoints, ", "))
	}
	if _, err := p.Kubectl(t.Context(), strings.NewReader(text.String()), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if f := check(pools.ProxyIPTables); !f.OK || !f.Advice || !strings.Contains(f.Detail, "proxyMode: nftables") || !strings.Contains(f.Detail, "Headless") {
		t.Errorf("many endpoints, iptables: %+v", f)
	}
	if f := check(pools.ProxyNFTables); !f.OK || f.Advice || !strings.Contains(f.Detail, "1, with about 1") {
		t.Errorf("many endpoints, nftables: %+v", f)
	}
	if _, err := p.Kubectl(t.Context(), nil, "delete", "endpointslices", "-l", "kubernetes.io/service-name=many"); err != nil {
		t.Fatal(err)
	}
}

// testGateway: a machine of a pool of gateways is a host of its cluster, and boots with
// credentials that the cluster takes for it.
func testGateway(t *testing.T, p *controlplane.Cluster, c *kube.Clusters) {
	n := hostNetwork
	farm, err := config.Parse(filepath.Join(t.TempDir(), "drover.yaml"), fmt.Appendf(nil, `server: {interfaces: [lo], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
clusters: [{name: %s, kubeconfig: %q, hostNetwork: {podCIDR: %s, serviceCIDR: %s, hostPodCIDR: %s}}]
pools: [{name: gw, cluster: %[1]s, role: gateway, image: debian-12, nodes: [{name: gw1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11}]}]
`, p.Name, p.Client, n.PodCIDR, n.ServiceCIDR, n.HostPodCIDR))
	if err != nil {
		t.Fatal(err)
	}
	c.Set(farm.Clusters())
	h, err := c.Hosts(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	var podCIDR netip.Prefix
	fixture.Retry(t, "the gateway has a Node", func() (err error) {
		podCIDR, err = h.State("gw1")
		return err
	})
	got, err := h.Credentials(t.Context(), "gw1", bundle.Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	files, units, err := bundle.Host{Name: "gw1", Cluster: p.Name, Address: netip.MustParseAddr("10.28.0.11"), PodCIDR: podCIDR, Network: h.Network(), Server: got.Server, CA: got.CA, Token: got.Token}.Config()
	if err != nil || len(units) < 5 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.WriteKubeconfig(kubeconfig, strings.TrimSpace(files["/etc/drover-host/"+p.Name+"/token"].Content)); err != nil {
		t.Fatal(err)
	}
	if out, err := p.KubectlAs(t.Context(), kubeconfig, nil, "get", "node", "gw1", "-o", "jsonpath={.spec.podCIDR} {.status.addresses[0].address}"); err != nil || out != podCIDR.String()+" 10.28.0.11" {
		t.Errorf("as the gateway sees its Node: %q, %v", out, err)
	}
	c.Set([]pools.Cluster{{Name: p.Name, Kubeconfig: p.Client, HostNetwork: hostNetwork}})
}
