package cluster_test

import (
	"strings"
	"testing"
	"time"

	"drover/kube/cluster"
)

// TestInspect: what counts is of the current context, and no error quotes the file.
func TestInspect(t *testing.T) {
	file := func(of, context string) string {
		return `{current-context: c, contexts: [{name: c, context: {` + context + `}}],
clusters: [{name: other, cluster: {server: "https://10.0.0.1:1"}}, {name: own, cluster: {server: "https://10.0.0.2:6443"` + of + `}}],
users: [{name: other, user: {token: x.eyJleHAiOjF9.y}}, {name: own, user: {token: x.eyJleHAiOjE5MDAwMDAwMDB9.y}},
  {name: none, user: {token: secret}}, {name: broken, user: {client-certificate-data: c2VjcmV0, client-key-data: c2VjcmV0}}]}`
	}
	for _, tt := range []struct {
		name, text string
		want       cluster.Kubeconfig
		err        string
	}{
		{"a token", file("", "cluster: own, user: own"), cluster.Kubeconfig{Server: "https://10.0.0.2:6443", Ends: time.Unix(1900000000, 0)}, ""},
		{"without an end", file("", "cluster: own, user: none"), cluster.Kubeconfig{Server: "https://10.0.0.2:6443"}, ""},
		{"by a proxy", file(`, proxy-url: "http://10.0.0.3:3128"`, "cluster: own, user: none"), cluster.Kubeconfig{Server: "https://10.0.0.2:6443", Proxy: true}, ""},
		{"no user", file("", "cluster: own"), cluster.Kubeconfig{Server: "https://10.0.0.2:6443"}, ""},
		{"a certificate that is none", file("", "cluster: own, user: broken"), cluster.Kubeconfig{}, "its client certificate"},
		{"an unknown cluster", file("", "cluster: third, user: own"), cluster.Kubeconfig{}, "leads to no API server"},
		{"no kubeconfig", "secret: secret", cluster.Kubeconfig{}, "it is not a kubeconfig"},
		{"no YAML", "[secret", cluster.Kubeconfig{}, "it is not a kubeconfig"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := cluster.Inspect([]byte(tt.text))
			if got.Server != tt.want.Server || got.Proxy != tt.want.Proxy || !got.Ends.Equal(tt.want.Ends) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v, want an error of %q", err, tt.err)
			}
		})
	}
}
