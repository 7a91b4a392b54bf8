package node_test

import (
	"fmt"
	"net/netip"

	"drover/kube/node"
	"drover/pools/resolve"
)

func ExampleRegistration_Render() {
	plan := &resolve.Plan{Node: "m1c29", Settings: resolve.Settings{Labels: map[string]string{
		"rack": "r7", "node-role.kubernetes.io/worker": "", // a kubelet may set only the first
	}}}
	registration, err := node.Register(plan, netip.MustParseAddr("10.28.36.173"))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := registration.Render("abcdef.0123456789abcdef", "10.0.0.1:6443", []string{"sha256:00"})
	fmt.Println(text, err)
	// Output:
	// apiVersion: kubeadm.k8s.io/v1beta4
	// discovery:
	//   bootstrapToken:
	//     apiServerEndpoint: 10.0.0.1:6443
	//     caCertHashes:
	//     - sha256:00
	//     token: abcdef.0123456789abcdef
	//   tlsBootstrapToken: abcdef.0123456789abcdef
	// kind: JoinConfiguration
	// nodeRegistration:
	//   criSocket: unix:///run/containerd/containerd.sock
	//   kubeletExtraArgs:
	//   - name: node-ip
	//     value: 10.28.36.173
	//   - name: node-labels
	//     value: drover/managed=true,rack=r7
	//   name: m1c29
	//   taints: []
	// timeouts:
	//   discovery: 2m
	//   kubeletHealthCheck: 2m
	//   tlsBootstrap: 3m
	//  <nil>
}
