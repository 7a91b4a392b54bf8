// Package attack sends a running drover packets and requests that nobody should send, and
// checks that machines boot all the same.
//
// A [Lab] is a set of networks: the server's, an attacker on the boot network, a node of
// one tenant with a pod behind its address, and a host of another network. A [Server] is
// the drover program, run as an operator runs it. A [Machine] boots from it as firmware
// and drover-init do. The floods ([Discovers], [Requests], [SlowReaders], [Idle]) run
// until their context ends.
//
// The tests of this package run the attacks for seconds. make attack runs them for longer
// and prints how much later a machine boots under each. The flag -drover, or
// DROVER_PROGRAM, names another program to attack, such as one of an older version.
//
// Everything needs root, and happens in network namespaces that the tests make. Nothing
// of this package is in the product.
package attack
