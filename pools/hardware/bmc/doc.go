// Package bmc has what all management processors have in common, be it the
// manager of a chassis, an iLO, or any baseboard management controller (BMC).
//
//   - [Login] is how to reach one: address, password, pinned key.
//   - [Driver] switches one machine; a [Switcher] gives the commands of an
//     [Action] to many machines in the right order.
//   - [IPMI] and [Program] are the drivers that run a program; packages moonshot
//     and redfish have the others.
//   - A [State] without a name here is [Unknown], which is not off.
//
// The rules for passwords hold everywhere: one is sent once, to a processor
// whose key is the known one, and is in no error and in no log.
//
// The package does not know the protocols, nor which nodes there are.
package bmc
