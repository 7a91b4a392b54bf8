// Package kube lets nodes join the tenants' Kubernetes clusters, and keeps the labels
// and taints of their Nodes equal to the farm's.
//
// [Clusters] is the set of clusters that the config names. [Clusters.Join] removes the
// Node of the machine's previous boot, mints a bootstrap token for one boot of one
// node, and returns the JoinConfiguration that kubeadm reads on the node. In the
// background it then waits until the Node is Ready in this boot, gives it its labels
// and taints, deletes the token and calls [Clusters.OnReady]. [Clusters.Resume]
// continues to wait after a restart of the server. [Clusters.Refresh] gives the Nodes
// the labels and taints of an edited config, and starts the moves of nodes that belong
// to another cluster now.
//
// The parts are packages of their own: cluster (connection, credentials, breaker),
// token (minting, shared tokens, seals of grants), node (registration, labels, taints,
// lease watch), approve (certificate requests), move (cordon, drain, delete) and
// inspect (drover cluster check and prepare).
//
// The package does not authenticate requests. Its caller has made sure that the request
// comes from the machine of the Plan.
//
// This package and those below it are the only ones of drover that import k8s.io.
package kube
