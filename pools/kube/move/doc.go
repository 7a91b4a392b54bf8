// Package move takes nodes out of a cluster that the farm has in another one now.
//
// A [Mover] is given the Nodes of one cluster by [Mover.Check]. A Node that drover
// made, and whose machine belongs elsewhere, is cordoned and drained, and deleted
// once its kubelet is silent and its machine is Ready where it belongs, or has been
// silent for so long that it is off. A Node that the farm has here again is
// uncordoned.
//
// The state of a move is in the cluster: a Node with drover's mark and seal, whose
// machine the farm has elsewhere, moves. So a restart of drover forgets nothing but
// how long a drain has lasted.
//
// The package does not know who changes the farm, and never starts or stops a
// machine.
package move
