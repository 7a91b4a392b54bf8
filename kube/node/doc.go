// Package node manages the Nodes of a cluster: the registration by their kubelets, their
// labels and taints, the watch of their Leases, the wait for Ready, and the deletion.
//
// drover's Nodes have the label [Managed], with which their kubelets register them. No
// other Node is changed or deleted. [Registration.Apply] gives a Node the labels and
// taints of its Plan. It lists them in sealed annotations of the Node. So drover can
// remove them later, and leaves the labels and taints of other clients alone.
//
// A machine that boots again gets a new Node: [Leases.RemoveStale] deletes that of its
// previous boot. The request to join is not enough for that, since an attacker who
// forges a whole boot can send it. The Lease of the Node's kubelet must also stay
// unchanged for longer than a living kubelet leaves it. Only versions of the Lease are
// compared, never times of different clocks.
//
// The package does not know the farm, nor when a Node has to change.
package node
