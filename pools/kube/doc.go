// Package kube lets nodes join the tenants' Kubernetes clusters.
//
// There is one type, [Clusters]. [Clusters.Join] mints a bootstrap token for
// one boot of one node, waits until the cluster has signed it into its
// cluster-info, and returns the JoinConfiguration that kubeadm reads on the
// node. It then follows the Node until it is Ready in this boot, gives it its
// labels, takes the token back and tells [Clusters.OnReady].
//
// In a cluster it needs no more than deploy/rbac.yaml gives: to create Secrets
// that are bootstrap tokens, to read cluster-info, and to see and patch Nodes.
// It reads no Secret, not even its own. Two controllers of the
// kube-controller-manager must run there, both off by default: bootstrapsigner
// and, to remove tokens that expired, tokencleaner.
//
// Every cluster has its own client, rate limit and time limits, made when first
// needed, so that one that is down or slow delays no other.
//
// A bootstrap token lets its holder become any node of its cluster, which is
// Kubernetes' design. Hence its short life, and hence the secret half is in no
// error and no log here: only in the Secret and in the JoinConfiguration.
//
// The package does not know who may join. Its caller has made sure that the
// request comes from the machine that the Plan is for. It does not remove the
// Node of an earlier boot either: as long as that one looks Ready to the cluster,
// about 50 seconds after the machine went away, kubeadm refuses to join.
//
// It is the only package of drover that imports k8s.io.
package kube
