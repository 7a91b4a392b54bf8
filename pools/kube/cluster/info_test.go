package cluster_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"drover/pools/kube/cluster"
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
