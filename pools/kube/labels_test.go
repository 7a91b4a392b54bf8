package kube_test

import (
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/kube"
)

func TestKubeletMaySet(t *testing.T) {
	tests := map[string]bool{
		"label1":                                 true,
		"example.org/rack":                       true,
		"notkubernetes.io/x":                     true,
		"kubernetes.io/hostname":                 true,
		"topology.kubernetes.io/zone":            true,
		"node.kubernetes.io/instance-type":       true,
		"node.kubernetes.io/anything":            true,
		"sub.node.kubernetes.io/x":               true,
		"kubelet.kubernetes.io/x":                true,
		"kubernetes.io/role":                     false,
		"node-role.kubernetes.io/worker":         false,
		"node-role.kubernetes.io/control-plane":  false,
		"node-restriction.kubernetes.io/x":       false,
		"sub.node-restriction.kubernetes.io/x":   false,
		"k8s.io/x":                               false,
		"cloud.k8s.io/x":                         false,
		"x-node.kubernetes.io/x":                 false,
		"feature.node.kubernetes.io/cpu-feature": true,
	}
	for label, want := range tests {
		if got := kube.KubeletMaySet(label); got != want {
			t.Errorf("KubeletMaySet(%q) is %v, want %v", label, got, want)
		}
	}
}

// Whatever a tenant writes into its cluster-info, what goes to kubeadm is like
// host:port, with at least one hash.
func FuzzClusterInfo(f *testing.F) {
	s := newAPIServer(f)
	f.Add(s.info)
	f.Add(strings.ReplaceAll(s.info, "https", "http"))
	f.Add("")
	f.Add("clusters: [{name: a, cluster: {server: 'https://[::1]:6443/x'}}, {name: b}]")
	f.Add("clusters: [{name: a, cluster: {server: \"https://a\\nb:6443\", certificate-authority-data: eA==}}]")
	f.Fuzz(func(t *testing.T, text string) {
		endpoint, hashes, err := kube.ParseInfo(map[string]string{"kubeconfig": text})
		if err != nil {
			return
		}
		if len(hashes) == 0 || !strings.Contains(endpoint, ":") || strings.ContainsAny(endpoint, " \n/") {
			t.Errorf("endpoint %q, hashes %q from %q", endpoint, hashes, text)
		}
	})
}

// Whatever an operator writes as an argument's value is refused, or is what the
// kubelet gets, in one word.
func FuzzKubeletArgs(f *testing.F) {
	f.Add("v", "4")
	f.Add("node-labels", "a=b")
	f.Add("hostname-override", "other")
	f.Add("--v", "4")
	f.Add("x", "a\n- name: kubeconfig\n  value: y")
	f.Add("n", "!!binary eA==")
	f.Fuzz(func(t *testing.T, name, value string) {
		p := plan(func(p *pools.Plan) { p.KubeletArgs = map[string]string{name: value} })
		text, err := kube.Render(p, addr())
		if err != nil {
			return
		}
		j := decode(t, text)
		for _, a := range j.NodeRegistration.KubeletExtraArgs {
			if strings.ContainsFunc(a.Name+a.Value, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
				t.Errorf("%q=%q from %q=%q", a.Name, a.Value, name, value)
			}
		}
		if j.arg(name) != value {
			t.Errorf("%q is %q, want %q", name, j.arg(name), value)
		}
	})
}
