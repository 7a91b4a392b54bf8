package cluster_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"drover/kube/cluster"
)

// TestAnchors: C2: a cluster-info of 60 kB whose anchors make 300 MB.
func TestAnchors(t *testing.T) {
	text := fmt.Sprintf("a: &a %q\nb: [%s]\nc: [%s]\n", strings.Repeat("x", 30_000), strings.Repeat("*a,", 9000), strings.Repeat("1,", 500))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := cluster.ParseInfo(map[string]string{"kubeconfig": text})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "YAML anchors") {
		t.Errorf("got %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("it took %d MiB", took>>20)
	}
	for text, want := range map[string]bool{
		"a: &b c": true, "&a b": true, "- &a b": true, "[&a b]": true, "{a: &a b}": true, "a:\n  &a\n  b": true, "[1,&a b]": true,
		"a: b&c": false, "a: b & c": false, "controllers: '*,bootstrapsigner'": false, "url: https://a/?x=1&y=2": false,
	} {
		if got := cluster.Anchored(text); got != want {
			t.Errorf("%q: anchored %t, want %t", text, got, want)
		}
	}
}

// TestEndpoint: nodes dial host:port, an IPv6 address in brackets.
func TestEndpoint(t *testing.T) {
	for server, want := range map[string]string{
		"https://10.28.0.5:6443": "10.28.0.5:6443", "https://api.example.org": "api.example.org:443", "https://api.example.org/": "api.example.org:443",
		"https://[fd00:28::5]:6443": "[fd00:28::5]:6443", "https://[fd00:28::5]": "[fd00:28::5]:443",
		"http://10.28.0.5:6443": "", "https://fd00:28::5:6443": "", "https://10.28.0.5/path": "", "10.28.0.5:6443": "",
	} {
		if got, err := cluster.Endpoint(server); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", server, got, err, want)
		}
	}
}
