package externalhost_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/externalhost"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// cluster returns a cluster with a host at an address, with all defaults.
func cluster(name, network, services, address string) pools.Cluster {
	pods := prefix(network)
	c := pools.Cluster{
		Name: name, Hosts: []pools.ExternalHost{{Name: "h1", Address: addr(address), Expose: []pools.Exposed{{Service: "web.default", Port: 80}}}},
		HostNetwork: &pools.HostNetwork{PodCIDR: pods, ServiceCIDR: prefix(services), HostPodCIDR: netip.PrefixFrom(pods.Addr(), 24)},
	}
	externalhost.SetDefaults(&c)
	return c
}

// farm has a cluster with a host, whose pool of gateways has one more.
func farm() *pools.Config {
	return &pools.Config{
		Subnets:  []pools.Subnet{{CIDR: prefix("10.28.0.0/16")}},
		Clusters: []pools.Cluster{cluster("a", "10.244.0.0/16", "10.96.0.0/12", "10.28.0.7")},
		Pools: []pools.Pool{
			{Name: "web", Cluster: "a", Nodes: []pools.Node{{Name: "n1", IP: addr("10.28.0.1")}}},
			{Name: "gw", Cluster: "a", Role: pools.RoleGateway, Nodes: []pools.Node{{Name: "g1", IP: addr("10.28.0.8")}, {Name: "gone", Ignore: true}}},
			{Name: "other", Cluster: "b", Role: pools.RoleGateway, Nodes: []pools.Node{{Name: "h1", IP: addr("10.28.0.7")}}},
		},
	}
}

// check returns the mistakes of the last cluster as lines, and fails the test for one without a
// remedy.
func check(t *testing.T, cfg *pools.Config) string {
	t.Helper()
	var lines []string
	for _, m := range externalhost.Check(cfg, len(cfg.Clusters)-1) {
		if hint, ok := errors.AsType[*pools.HintError](m.Err); !ok || hint.Hint == "" || m.Other == "" || !strings.HasPrefix(m.About, `cluster "`) {
			t.Errorf("%+v has no remedy, or no other place", m)
		}
		lines = append(lines, m.Path+": "+m.Err.Error())
	}
	return strings.Join(lines, "\n")
}

func TestDefaults(t *testing.T) {
	cfg := farm()
	if got := check(t, cfg); got != "" {
		t.Error(got)
	}
	c := &cfg.Clusters[0]
	if n := c.HostNetwork; n.DNS != addr("10.96.0.10") || n.CNI != pools.Flannel || n.VNI != 1 || n.Port != 8472 || n.NodeMask != 24 {
		t.Errorf("got %+v", n)
	}
	if h := c.Hosts[0]; h.Size != externalhost.DefaultSize || h.Expose[0].HostPort != 80 {
		t.Errorf("got %+v", h)
	}
	hosted := pools.Cluster{HostNetwork: &pools.HostNetwork{}, ControlPlane: &pools.ControlPlane{
		PodSubnet: pools.Prefixes{prefix("fd00::/56"), prefix("10.8.0.0/16")}, ServiceSubnet: pools.Prefixes{prefix("fd00:9::/112")},
	}}
	externalhost.SetDefaults(&hosted)
	if n := hosted.HostNetwork; n.PodCIDR != prefix("10.8.0.0/16") || n.ServiceCIDR.IsValid() || n.DNS.IsValid() { // hosts have IPv4 alone
		t.Errorf("got %+v", n)
	}
}

func TestCheck(t *testing.T) {
	type edit = func(*pools.Config, *pools.HostNetwork, *pools.ExternalHost)
	const network = "clusters[0].hostNetwork."
	for want, f := range map[string]edit{
		network + "podCIDR: podCIDR is not set": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) { n.PodCIDR = netip.Prefix{} },
		network + "serviceCIDR: fd00::/112: hosts outside": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) {
			n.ServiceCIDR, n.DNS = prefix("fd00::/112"), addr("fd00::a")
		},
		network + "hostPodCIDR: 10.244.0.9/24 has host bits": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) {
			n.HostPodCIDR = prefix("10.244.0.9/24")
		},
		network + "hostPodCIDR: 10.245.0.0/24 is not inside": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) {
			n.HostPodCIDR = prefix("10.245.0.0/24")
		},
		network + "hostPodCIDR: 10.244.0.0/16 is all of podCIDR": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) { n.HostPodCIDR = n.PodCIDR },
		network + "hostPodCIDR: 10.244.0.0/25 is smaller than": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) {
			n.HostPodCIDR = prefix("10.244.0.0/25")
		},
		network + "nodeMaskSize: 8 is not from 16": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) { n.NodeMask = 8 },
		network + "serviceCIDR: 10.244.64.0/20 overlaps podCIDR": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) {
			n.ServiceCIDR, n.DNS = prefix("10.244.64.0/20"), addr("10.244.64.10")
		},
		network + "vni: 16777216 is not":                 func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) { n.VNI = 1 << 24 },
		network + "port: 65536 is not":                   func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) { n.Port = 65536 },
		network + "proxyMode: \"ipvs\" is not":           func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) { n.ProxyMode = "ipvs" },
		network + "dns: 10.28.0.1 is not in serviceCIDR": func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) { n.DNS = addr("10.28.0.1") },
		network + "domain: \"a b\" is not":               func(_ *pools.Config, n *pools.HostNetwork, _ *pools.ExternalHost) { n.Domain = "a b" },
		network + "podCIDR: 10.244.0.0/16 overlaps subnet": func(c *pools.Config, _ *pools.HostNetwork, _ *pools.ExternalHost) {
			c.Subnets = []pools.Subnet{{CIDR: prefix("10.244.128.0/24")}}
		},
		`clusters[0].hosts[0].name: "H1" cannot be`:                  func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Name = "H1" },
		`clusters[0].hosts[0].name: "drover-host-range" is the Node`: func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Name = externalhost.RangeName },
		`clusters[0].hosts[0].name: "n1" is a node of a pool`:        func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Name = "n1" },
		`pools[1].nodes[0].name: "h1" is there twice`:                func(c *pools.Config, _ *pools.HostNetwork, _ *pools.ExternalHost) { c.Pools[1].Nodes[0].Name = "h1" },
		"pools[1].nodes[0].address: 10.28.0.7 is there twice":        func(c *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { c.Pools[1].Nodes[0].IP = h.Address },
		"clusters[0].hosts[0]: host \"h1\" has no address":           func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Address = netip.Addr{} },
		"clusters[0].hosts[0].address: fd00::7 cannot be":            func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Address = addr("fd00::7") },
		"clusters[0].hosts[0].address: 127.0.0.1 cannot be":          func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Address = addr("127.0.0.1") },
		"clusters[0].hosts[0].address: 10.244.9.9 is in a network":   func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Address = addr("10.244.9.9") },
		"clusters[0].hosts[0].podCIDRSize: 31 is not from 24 to 30":  func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Size = 31 },
		"pools[1].nodes[0]: hostPodCIDR 10.244.0.0/24 has 256":       func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Size = 24 }, // no room for the gateway
		`clusters[0].hosts[0].expose[0].service: "web" is not`:       func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Expose[0].Service = "web" },
		"clusters[0].hosts[0].expose[0].hostPort: -1 is not":         func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) { h.Expose[0].HostPort = -1 },
		"clusters[0].hosts[0].expose[1].hostPort: port 80 of host": func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) {
			h.Expose = append(h.Expose, h.Expose[0])
		},
		"clusters[0].hosts[0].expose: a host exposes 64 Services": func(_ *pools.Config, _ *pools.HostNetwork, h *pools.ExternalHost) {
			h.Expose = make([]pools.Exposed, externalhost.MaxExposed+1)
		},
	} {
		cfg := farm()
		f(cfg, cfg.Clusters[0].HostNetwork, &cfg.Clusters[0].Hosts[0])
		if got := check(t, cfg); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got\n%s\nwant the one mistake\n%s", got, want)
		}
	}
}

// TestWithoutNetwork: hosts and gateways take part in a network that is known, and in no other.
func TestWithoutNetwork(t *testing.T) {
	cfg := farm()
	cfg.Clusters[0].HostNetwork = nil
	if got, want := check(t, cfg), "pools[1].role: pool \"gw\" has gateways, and the network of the cluster is not known"; !strings.HasPrefix(got, want) || !strings.Contains(got, "\nclusters[0].hosts: hosts need a hostNetwork") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	cfg = farm()
	cfg.Clusters[0].HostNetwork.CNI = "calico"
	if got, want := check(t, cfg), "pools[1].role: pool \"gw\" has gateways, and calico is not supported"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, tt := range []struct {
		p    pools.Pool
		want string
	}{
		{pools.Pool{}, ""}, {pools.Pool{Role: pools.RoleNode, CatchAll: true}, ""}, {pools.Pool{Role: pools.RoleGateway, Cluster: "a"}, ""},
		{pools.Pool{Role: "router"}, `"router" is not a role`}, {pools.Pool{Role: pools.RoleGateway}, "the pool has none"},
		{pools.Pool{Role: pools.RoleGateway, Cluster: "a", CatchAll: true}, "a catch-all pool has no gateways"},
	} {
		if err := externalhost.Role(tt.p); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.p, err, tt.want)
		}
	}
}

// TestTwoClusters: a host is in two clusters if nothing of them meets on it. The mistake is one of
// the later cluster, and names the place in the earlier one.
func TestTwoClusters(t *testing.T) {
	for _, tt := range []struct {
		edit func(*pools.Cluster)
		want string
	}{
		{func(*pools.Cluster) {}, ""},
		{func(b *pools.Cluster) { b.HostNetwork.VNI = 1 }, "both have VNI 1"},
		{func(b *pools.Cluster) { b.HostNetwork.ProxyMode = pools.ProxyNFTables }, "both have proxyMode nftables"},
		{func(b *pools.Cluster) { b.Hosts[0].Expose[0].HostPort = 80 }, "its port 80 leads to Services of both"},
		{func(b *pools.Cluster) {
			b.HostNetwork.ServiceCIDR, b.HostNetwork.DNS = prefix("10.96.0.0/16"), addr("10.96.0.10")
		}, "10.96.0.0/12 overlaps 10.96.0.0/16"},
		{func(b *pools.Cluster) { b.HostNetwork.VNI, b.Hosts[0].Address = 1, addr("10.28.0.9") }, ""}, // another host
	} {
		cfg := farm()
		cfg.Pools = nil
		b := cluster("b", "10.200.0.0/16", "10.201.0.0/16", "10.28.0.7")
		b.HostNetwork.VNI, b.HostNetwork.ProxyMode, b.Hosts[0].Expose[0].HostPort = 2, pools.ProxyIPTables, 8080
		tt.edit(&b)
		cfg.Clusters = append(cfg.Clusters, b)
		got := check(t, cfg)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		if all := externalhost.Check(cfg, 1); tt.want != "" && (len(all) != 1 || fmt.Sprint(all[0].Path, all[0].Other) != "clusters[1].hosts[0]clusters[0].hosts[0]") {
			t.Errorf("got %+v", all)
		}
		if first := externalhost.Check(cfg, 0); len(first) > 0 {
			t.Errorf("the earlier cluster has %+v", first)
		}
	}
}
