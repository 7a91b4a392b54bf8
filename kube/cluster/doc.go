// Package cluster is the connection to one tenant's Kubernetes cluster.
//
// A [Cluster] has the credentials in force. They come from a kubeconfig file, which is
// read again when it changes, from a Secret in the admin cluster, which
// [Cluster.WatchSecret] watches, or from the pod that drover runs
// in.
// [Cluster.Client] returns the client, [Cluster.Info] the cluster-info that
// kubeadm nodes start from, and [Follow] watches objects.
//
// Every cluster has its own client, rate limit and time limits, and a breaker
// that stops requests to an API server which does not answer. So a cluster that
// is down or slow delays no other.
//
// [Cluster.Wrap] turns the error of a request into an [*Error], with the cluster, the
// action, the cause, and the time after which to try again.
//
// The package does not know nodes, join tokens or certificates.
package cluster
