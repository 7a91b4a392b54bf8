// Package node is what drover does with the Nodes of a cluster: how a kubelet
// registers one, which labels and taints it has, whether its kubelet lives, when it
// is Ready, and when it is deleted.
//
// drover's Nodes have the label [Mark], which their kubelets register them with. No
// other Node is changed or deleted. [Registration.Apply] gives a Node the labels
// and taints of its Plan. What drover gave a Node is noted in annotations of the
// Node, under a seal, so that drover can take it away again and leaves alone what
// others gave the Node.
//
// A machine that boots anew gets a new Node: [Leases.RemoveStale] deletes the one of
// its boot before. The request to join is no reason for that, since anyone who forges
// a whole boot can send it. The reason is that the Lease of the Node's kubelet does
// not change for longer than a living kubelet would leave it. Only versions of the
// Lease are compared, never a time of one clock with that of another.
//
// The package does not know which nodes the farm has, nor when anything is to be
// done.
package node
