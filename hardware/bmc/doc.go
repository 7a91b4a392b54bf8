// Package bmc has the common parts of all management processors: the manager of a
// chassis, an iLO, and any other baseboard management controller (BMC).
//
//   - [Login] has the address and the credentials of a processor.
//   - [Driver] switches one machine. [Switcher] executes an [Action] on many machines.
//   - [IPMI] and [Program] are the drivers that run a program. Packages moonshot and
//     redfish have the others.
//   - [State] is a power state. [Unknown] does not mean off.
//
// The rules for passwords hold everywhere. A password is sent once, and only to a
// processor with the known key. No error and no log contains it.
//
// The package does not know the protocols or the nodes of the farm.
package bmc
