// Package attack sends hostile packets and requests to a running drover, and checks that
// machines still boot.
//
// A [Lab] is a set of networks: the server's, an attacker on the boot network, a node of
// one tenant with a pod behind its address, and a host of another network. A [Rack] has machines
// and a stranger behind a relay agent. A [Server] is
// the drover program, run as an operator runs it. A [Machine] boots from it as firmware
// and drover-init do. The floods ([Discovers], [Requests], [SlowReaders], [Idle], [Routers]) run
// until their context ends.
//
// The tests of this package run the attacks for seconds. make attack runs them for longer
// and prints how much later a machine boots under each. The flag -drover, or the variable
// DROVER_PROGRAM, names another program to attack, such as an older version.
//
// The tests need root, and run in network namespaces that they make. Nothing of this
// package is in the product.
package attack
