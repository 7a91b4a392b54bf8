package kube_test

import (
	"context"
	"fmt"
	"net/netip"

	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// A node requests to join a cluster whose kubeconfig does not exist yet: the error has
// the cause, and the time after which the node tries again.
func ExampleClusters_Join() {
	clusters := &kube.Clusters{}
	clusters.Set([]pools.Cluster{{Name: "tenant-a", Kubeconfig: "testdata/tenant-a.kubeconfig"}})
	defer clusters.Close()

	plan := &resolve.Plan{Node: "m1c29", Cluster: "tenant-a"}
	_, err := clusters.Join(context.Background(), plan, netip.MustParseAddr("10.28.36.173"), "")
	fmt.Println(err)
	// Output:
	// cluster "tenant-a": connect: its kubeconfig cannot be used: stat testdata/tenant-a.kubeconfig: no such file or directory
}
