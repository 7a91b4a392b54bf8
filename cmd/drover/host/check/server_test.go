package check_test

import (
	"net/netip"
	"testing"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/host/check"
	"drover/e2e/fixture"
	"drover/kube/externalhost"
	"drover/pools"
)

// TestServer examines hosts from the objects of their cluster.
func TestServer(t *testing.T) {
	network := &pools.HostNetwork{
		CNI: pools.Flannel, PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"),
		HostPodCIDR: netip.MustParsePrefix("10.244.240.0/20"), NodeMask: 24, VNI: 7, Port: 8472,
	}
	for _, test := range []struct {
		name   string
		change func(s *externalhost.Status, node, own *externalhost.Peer)
		want   string // of the finding; empty: there is no fault
	}{
		{"whole", func(*externalhost.Status, *externalhost.Peer, *externalhost.Peer) {}, ""},
		{"an older flannel, which does not write its VNI", func(_ *externalhost.Status, node, own *externalhost.Peer) { node.VNI, own.VNI = 0, 0 }, ""},
		{"not in the config", func(s *externalhost.Status, _, _ *externalhost.Peer) { s.Declared = false }, "fault    config       the host is not in the config"},
		{"no objects", func(s *externalhost.Status, _, _ *externalhost.Peer) { s.PodCIDR = netip.Prefix{} }, "fault    config       the host has no Node or ServiceAccount yet"},
		{"no Lease", func(s *externalhost.Status, _, _ *externalhost.Peer) { s.Ready = false }, "fault    lease"},
		{"no flannel on the host", func(_ *externalhost.Status, _, own *externalhost.Peer) { own.Backend, own.VNI = "", 0 }, "fault    flannel      flannel has not run on the host"},
		{"no Node", func(_ *externalhost.Status, _, own *externalhost.Peer) { own.Name = "other" }, "cluster \"tenant\" has no Node legacy1"},
		{"another public address", func(_ *externalhost.Status, _, own *externalhost.Peer) {
			own.PublicIP = netip.MustParseAddr("192.0.2.99")
		}, "nodes send packets for the host to 192.0.2.99, and its address is 192.0.2.10"},
		{"another pod network", func(_ *externalhost.Status, _, own *externalhost.Peer) {
			own.PodCIDR = netip.MustParsePrefix("10.244.240.16/28")
		}, "the pod network of the host is now 10.244.240.16/28"},
		{"another VNI on nodes", func(_ *externalhost.Status, node, _ *externalhost.Peer) { node.VNI = 1 }, "-> hostNetwork.vni: 1"},
		{"another VNI on the host", func(_ *externalhost.Status, _, own *externalhost.Peer) { own.VNI = 3 }, "the VXLAN of nodes legacy1 has VNI 3"},
		{"Cilium", func(_ *externalhost.Status, node, _ *externalhost.Peer) {
			node.CNI, node.Backend, node.VNI = "cilium", "", 0
		}, "fault    cni          the network of nodes n1 is cilium"},
		{"Calico", func(_ *externalhost.Status, node, _ *externalhost.Peer) {
			node.CNI, node.Backend, node.VNI = "calico", "", 0
		}, "fault    cni          the network of nodes n1 is calico"},
		{"host-gw", func(_ *externalhost.Status, node, _ *externalhost.Peer) { node.Backend, node.VNI = "host-gw", 0 }, "flannel with the backend host-gw"},
		{"a node in the pod network", func(_ *externalhost.Status, node, _ *externalhost.Peer) {
			node.Address = netip.MustParseAddr("10.244.3.4")
		}, "the address 10.244.3.4 of node n1 is in the cluster's network 10.244.0.0/16"},
		{"another pod network of the cluster", func(_ *externalhost.Status, node, _ *externalhost.Peer) {
			node.PodCIDR = netip.MustParsePrefix("10.42.0.0/24")
		}, "the pod network 10.42.0.0/24 of node n1 is not in podCIDR 10.244.0.0/16"},
		{"a node with the host's network", func(_ *externalhost.Status, node, _ *externalhost.Peer) {
			node.PodCIDR = netip.MustParsePrefix("10.244.240.0/24")
		}, "overlaps 10.244.240.0/2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			own := externalhost.Peer{
				Name: "legacy1", External: true, Address: netip.MustParseAddr("192.0.2.10"), PodCIDR: netip.MustParsePrefix("10.244.240.0/28"),
				CNI: "flannel", Backend: "vxlan", VNI: 7, PublicIP: netip.MustParseAddr("192.0.2.10"),
			}
			node := externalhost.Peer{
				Name: "n1", Address: netip.MustParseAddr("192.0.2.1"), PodCIDR: netip.MustParsePrefix("10.244.0.0/24"),
				CNI: "flannel", Backend: "vxlan", VNI: 7, PublicIP: netip.MustParseAddr("192.0.2.1"),
			}
			s := externalhost.Status{Name: "legacy1", Address: own.Address, PodCIDR: own.PodCIDR, Ready: true, Flannel: true, Account: true, Declared: true}
			test.change(&s, &node, &own)
			all := check.Server("tenant", s, network, []externalhost.Peer{node, own})
			fixture.WantText(t, "findings", text(all), test.want)
			for _, f := range all {
				if f.Result == cli.Fault && (test.want == "" || f.Remedy == "") {
					t.Errorf("%+v", f)
				}
			}
			if test.want != "" && all.Faults() == 0 {
				t.Error("there is no fault")
			}
		})
	}
}
