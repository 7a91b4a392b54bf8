package externalhost

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPeer(t *testing.T) {
	addr, cidr := netip.MustParseAddr("192.0.2.1"), netip.MustParsePrefix("10.244.0.0/24")
	for _, test := range []struct {
		name  string
		notes map[string]string
		want  Peer
	}{
		{"no CNI", nil, Peer{}},
		{"before flannel has run", map[string]string{publicIP: "192.0.2.1"}, Peer{}},
		{
			"flannel", map[string]string{flannelType: "vxlan", flannelBackend: `{"VNI":7,"VtepMAC":"02:00:00:00:00:01"}`, flannelPublic: "192.0.2.9", publicIP: "192.0.2.9"},
			Peer{CNI: "flannel", Backend: "vxlan", VNI: 7, PublicIP: netip.MustParseAddr("192.0.2.9")},
		},
		{"hostile", map[string]string{flannelType: "vxlan", flannelBackend: `{"VNI":"7"}`, flannelPublic: "x"}, Peer{CNI: "flannel", Backend: "vxlan"}},
		{"Cilium", map[string]string{"network.cilium.io/ipv4-pod-cidr": "10.0.0.0/24"}, Peer{CNI: "cilium"}},
		{"Calico", map[string]string{"projectcalico.org/IPv4Address": "192.0.2.1/24"}, Peer{CNI: "calico"}},
		{"canal", map[string]string{"projectcalico.org/IPv4Address": "192.0.2.1/24", flannelType: "vxlan"}, Peer{CNI: "flannel", Backend: "vxlan"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: test.notes}, Spec: corev1.NodeSpec{PodCIDR: cidr.String(), PodCIDRs: []string{"fd00::/64", cidr.String()}},
				Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "fd00::1"}, {Type: corev1.NodeInternalIP, Address: addr.String()}}},
			}
			test.want.Name, test.want.Address, test.want.PodCIDR = "n1", addr, cidr
			if got := peer(n); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	port, udp, no := int32(8080), corev1.ProtocolUDP, false
	s := &discoveryv1.EndpointSlice{
		Ports: []discoveryv1.EndpointPort{{}, {Port: new(int32(53)), Protocol: &udp}, {Port: &port}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.244.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}},
			{Addresses: []string{"x", "192.0.2.1"}}, {Addresses: []string{"10.244.0.3"}},
		},
	}
	got := targets(s, netip.MustParsePrefix("10.244.0.0/16"))
	if want := netip.MustParseAddrPort("10.244.0.3:8080"); len(got) != 1 || got[0] != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := targets(s, netip.MustParsePrefix("10.99.0.0/16")); got != nil {
		t.Errorf("outside of the pod network: %v", got)
	}
}
