// Package ilosim simulates a Moonshot chassis and an iLO on loopback. They
// answer as real ones do, and fail as real ones do when a test injects a
// [Fault].
//
// A [Chassis] holds [Node]s and serves SSH ([Chassis.ServeSSH]) and HTTP
// ([Chassis.Handler]). An [ILO] is one server with its own management
// processor, and a [BMC] one with Redfish and the [Habits] of any vendor. Powering a node takes time, as with real hardware, and calls a
// hook, so that a lab can start a virtual machine for the node. Command
// ./e2e/ilosim/cmd/ilosim runs either from a shell.
//
// The outputs follow published code and recordings of real chassis. The rest
// (the pager, the duration of a login, most of REST on a chassis) is an
// assumption, and the comment beside it says so.
//
// The package imports nothing of drover: the simulator must not share the
// mistakes of the program that it tests.
package ilosim
