// Package importer turns inventories of the hardware into nodes of the farm.
//
// A [Namer] names the nodes of a chassis and compares an inventory with the stored
// nodes; [CompareServers] does so for servers with an iLO of their own. The result
// is a list of [Change], valid together or not at all.
//
// [Moonshot] and [ILO] are the imports of the command line. They read the hardware,
// compare it with the stored nodes, and write the nodes to a [Target]: a running server,
// a file or standard output. A [Result] has the reports to print.
//
// The package does not know flags, exit codes, or how a server stores nodes.
package importer
