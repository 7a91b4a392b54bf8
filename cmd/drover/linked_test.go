package main

import (
	"os/exec"
	"strings"
	"testing"
)

// unlinked are packages that cmd/drover must not link, not even through others. Each links
// the types and clients of all groups of Kubernetes' API, half of the program; kube/client
// and kube/election have what drover needs of them.
var unlinked = []string{
	"k8s.io/client-go/applyconfigurations", "k8s.io/client-go/discovery", "k8s.io/client-go/informers",
	"k8s.io/client-go/kubernetes", "k8s.io/client-go/tools/leaderelection",
}

func TestLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 100 {
		t.Fatalf("go list names %d packages only", len(packages))
	}
	for _, p := range packages {
		for _, never := range unlinked {
			if p == never || strings.HasPrefix(p, never+"/") {
				t.Errorf("drover links %s: see kube/client", p)
			}
		}
	}
}
