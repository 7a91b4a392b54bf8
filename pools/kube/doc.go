// Package kube lets nodes join the tenants' Kubernetes clusters, and keeps their
// Nodes as the farm says.
//
// [Clusters] is the set of clusters that the config names. [Clusters.Join] is the
// entry: it removes the Node of the machine's boot before, mints a bootstrap token for
// one boot of one node, and returns the JoinConfiguration that kubeadm reads on the
// node. Then it waits for the Node to be Ready in this boot, gives it its labels and
// taints, deletes the token and calls [Clusters.OnReady]. [Clusters.Resume] waits on
// after a restart of the server. [Clusters.Refresh] gives the Nodes the labels and
// taints of an edited config, and starts the moves of nodes that belong to another
// cluster now.
//
// The parts are packages of their own: cluster (connection, credentials, breaker),
// token (minting, shared tokens, seals of grants), node (registration, labels, taints,
// lease watch), approve (certificate requests), move (cordon, drain, delete) and
// inspect (drover cluster check and prepare).
//
// The package does not know who may join. Its caller has made sure that the
// request comes from the machine that the Plan is for.
//
// It and the packages below it are the only ones of drover that import k8s.io.
package kube
