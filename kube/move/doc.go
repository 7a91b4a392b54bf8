// Package move removes nodes from a cluster after the farm has given them to another.
//
// [Mover.Check] gets the Nodes of one cluster. A Node that drover made, and whose
// machine belongs to another cluster, is cordoned and drained. The Node is deleted once
// its kubelet is silent and its machine is Ready in the other cluster, or once the
// kubelet has been silent for so long that the machine is off. A Node that the farm
// gives back to this cluster is uncordoned.
//
// The state of a move is in the cluster: a Node with drover's label and seal, whose
// machine belongs to another cluster, moves. So a restart of drover loses only the time
// that a drain has lasted.
//
// [Mover.Drain] cordons and drains a Node whose machine stays in the farm, before it is
// switched off.
//
// The package does not know how the farm changes, and never starts or stops a machine.
package move
