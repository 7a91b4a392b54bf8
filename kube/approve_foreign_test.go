package kube_test

import (
	"crypto/x509"
	"net"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// TestApproverOfForeignNodes: no token gives the certificate of a Node that drover does not own,
// also if the Node came after the token was minted.
func TestApproverOfForeignNodes(t *testing.T) {
	s := newAPIServer(t)
	for _, name := range []string{"cp1", "labelled-cp", "theirs", "sealed", "mine"} {
		s.setNode(name, "u-"+name, "b1", corev1.ConditionFalse, beat(1))
	}
	s.edit("cp1", func(n *corev1.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""} })
	s.edit("labelled-cp", func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" })
	s.edit("theirs", func(n *corev1.Node) { n.Labels = nil })
	s.edit("sealed", func(n *corev1.Node) { n.Annotations = map[string]string{"drover/seal": "00"} })
	withLoops(t, s, pools.Cluster{})
	for name, want := range map[string]string{
		"cp1": "Denied: drover: the Node cp1 is a control-plane host", "labelled-cp": "Denied: drover: the Node labelled-cp is a control-plane host",
		"theirs": "Denied: drover: drover did not make the Node theirs", "sealed": "Denied: drover: another drover made the Node sealed",
		"mine": "Approved", "new": "Approved",
	} {
		id := name[:3] + "123"
		s.ask(request(t, name, id, groupsOf(id, name), name))
		decided(t, s, name, want)
	}
}

// TestApproverOfInfrastructure: no kubelet gets a serving certificate for the address of another
// host, even if its node has that address since before the config named the host.
func TestApproverOfInfrastructure(t *testing.T) {
	s := newAPIServer(t)
	mac := pools.MAC{2, 0, 0, 0, 0, 1}
	node := pools.PoolNode{Pool: "web", Node: pools.Node{Name: "m1", MACs: []pools.MAC{mac}, IP: netip.MustParseAddr("10.28.0.100")}}
	cfg := pools.Config{
		Subnets:  []pools.Subnet{{CIDR: netip.MustParsePrefix("10.28.0.0/16")}},
		Clusters: []pools.Cluster{{Name: "tenant-a", Endpoint: "10.28.0.100:6443"}},
		Pools:    []pools.Pool{{Name: "web", Cluster: "tenant-a"}},
	}
	f := &farm{plans: map[string]*resolve.Plan{}}
	f.set(resolve.NewFarm(resolve.Checked{Config: cfg, Added: []pools.PoolNode{node}}).Resolve(resolve.Query{MAC: mac}))
	_, requests, _ := withLoops(t, s, pools.Cluster{Serving: true}, func(c *kube.Clusters) { c.Machines = f })
	s.ask(serving(request(t, "vip", "", "", "m1", func(r *x509.CertificateRequest) {
		r.DNSNames, r.IPAddresses = []string{"m1"}, []net.IP{net.IPv4(10, 28, 0, 100)}
	}), "m1"))
	fixture.Eventually(t, "the report", func() bool { return slices.Equal(requests.of("vip"), []string{"left"}) })
	if got := s.outcome("vip"); got != "" {
		t.Errorf("the address of the API server: %s", got)
	}
}
