// Package bmc has what all management processors have in common, be it the
// manager of a chassis, an iLO, or any baseboard management controller (BMC).
//
//   - [Login] has the address, the password and the pinned key of one.
//   - [Driver] switches one machine; a [Switcher] gives the commands of an
//     [Action] to many machines in the right order.
//   - [IPMI] and [Program] are the drivers that run a program; packages moonshot
//     and redfish have the others.
//   - A [State] without a name here is [Unknown], which is not off.
//
// The rules for passwords hold everywhere. A password is sent once, and only to a
// processor with the known key. No error and no log contains it.
//
// The package does not know the protocols or the nodes of the farm.
package bmc
