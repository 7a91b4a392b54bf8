package kube_test

import (
	"strings"
	"testing"

	"drover/kube/cluster"
	"drover/kube/node"
	"drover/pools/resolve"
)

// For any cluster-info of a tenant, kubeadm gets a host:port and at least one hash.
func FuzzClusterInfo(f *testing.F) {
	s := newAPIServer(f)
	f.Add(s.info)
	f.Add(strings.ReplaceAll(s.info, "https", "http"))
	f.Add("")
	f.Add("clusters: [{name: a, cluster: {server: 'https://[::1]:6443/x'}}, {name: b}]")
	f.Add("clusters: [{name: a, cluster: {server: \"https://a\\nb:6443\", certificate-authority-data: eA==}}]")
	f.Fuzz(func(t *testing.T, text string) {
		info, err := cluster.ParseInfo(map[string]string{"kubeconfig": text})
		if err != nil {
			return
		}
		endpoint, hashes := info.Endpoint, info.Hashes
		if len(hashes) == 0 || !strings.Contains(endpoint, ":") || strings.ContainsAny(endpoint, " \n/") {
			t.Errorf("endpoint %q, hashes %q from %q", endpoint, hashes, text)
		}
	})
}

// Any value of a kubelet argument is refused, or reaches the kubelet as one word.
func FuzzKubeletArgs(f *testing.F) {
	f.Add("v", "4")
	f.Add("node-labels", "a=b")
	f.Add("hostname-override", "other")
	f.Add("--v", "4")
	f.Add("x", "a\n- name: kubeconfig\n  value: y")
	f.Add("n", "!!binary eA==")
	f.Fuzz(func(t *testing.T, name, value string) {
		p := plan(func(p *resolve.Plan) { p.KubeletArgs = map[string]string{name: value} })
		reg, err := node.Register(p, addr())
		if err != nil {
			return
		}
		text, err := reg.Render("abcdef.0123456789abcdef", "10.0.0.1:6443", []string{"sha256:00"})
		if err != nil {
			t.Fatal(err)
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
