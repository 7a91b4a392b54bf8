// Package cluster is the connection to one tenant's Kubernetes cluster.
//
// A [Cluster] has the credentials that are in force: those of a kubeconfig file,
// read anew when the file changes, those of a Secret in the admin cluster, which
// [Cluster.WatchSecret] follows, or those of the cluster that drover runs in.
// [Cluster.Client] returns the client, [Cluster.Info] the cluster-info that
// kubeadm nodes start from, and [Follow] watches objects.
//
// Every cluster has its own client, rate limit and time limits, and a breaker
// that stops requests to an API server which does not answer. So a cluster that
// is down or slow delays no other.
//
// Errors of requests become an [*Error] by [Cluster.Wrap]: which cluster, during
// what, why, and when to try again.
//
// The package does not know what is done in the cluster: nothing of nodes, join
// tokens or certificates.
package cluster
