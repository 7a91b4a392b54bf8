// Package kube lets nodes join the tenants' Kubernetes clusters.
//
// There is one type, [Clusters]. [Clusters.Join] mints a bootstrap token for
// one boot of one node, waits until the cluster has signed it into its
// cluster-info, and returns the JoinConfiguration that kubeadm reads on the
// node. It then follows the Node until it is Ready in this boot, gives it its
// labels and taints, takes the token back and tells [Clusters.OnReady]. After a
// restart of the server [Clusters.Resume] follows it on. [Clusters.Refresh] has
// the Nodes follow a config that was edited.
//
// A machine that boots anew gets a new Node: the one of its boot before is
// deleted. That the machine asks for its join is no reason to: whoever forges a
// whole boot can ask. The reason is that the Lease of the Node's kubelet does not
// change for longer than a kubelet that lives would leave it, from the time when
// the machine got its config ([Clusters.Expect]) on. Only versions of the Lease
// are compared, never a time of one clock with another's. As long as a kubelet
// of that name lives, the name gets no token either.
//
// With [Clusters.Attend] it also approves the certificates that nodes ask for by
// these tokens. A request tells who made it, and by which token; the token's group
// tells, under a seal, which node it was minted for. So the approver remembers
// nothing and reads no Secret. It denies what else is asked for by drover's tokens,
// leaves alone what is not drover's, and tells [Clusters.OnRequest]. Clusters with
// shared tokens get a new one on their schedule; the last two are valid.
//
// drover's Nodes have the label drover/managed, which their kubelets register
// them with. No other Node is changed or deleted. What drover gave a Node is
// noted in its annotations, under a seal, so that it can take that away again
// and leaves alone what others gave it.
//
// In a cluster it needs no more than deploy/rbac.yaml gives: to create and delete
// Secrets that are bootstrap tokens, to read cluster-info and the Leases of
// kubelets, to see certificate requests and approve those of its tokens, and to see
// Nodes and patch and delete its own. It reads no Secret,
// not even its own. Two controllers of the
// kube-controller-manager must run there, both off by default: bootstrapsigner
// and, to remove tokens that expired, tokencleaner.
//
// Every cluster has its own client, rate limit and time limits, made when first
// needed, so that one that is down or slow delays no other.
//
// A bootstrap token lets its holder become a node of its cluster: the one that it was
// minted for, or, where the cluster approves by itself, any. Hence its short life, and hence the secret half is in no
// error and no log here: only in the Secret and in the JoinConfiguration.
//
// The package does not know who may join. Its caller has made sure that the
// request comes from the machine that the Plan is for.
//
// It is the only package of drover that imports k8s.io.
package kube
