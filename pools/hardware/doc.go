// Package hardware keeps the farm's nodes as the hardware has them, and switches
// machines.
//
// A [Service] belongs to a running server. For each chassis of the config it has a
// [Sync], which reads the chassis at an interval and stores the changes, all or
// none. It executes power orders as jobs, with an audit entry for each machine,
// and lets only one user at a time talk to a management processor. [Driver] opens a
// machine's BMC for the server and the command line alike.
//
// Below it: bmc (logins, power states, the order of commands), sshcli and redfish
// (protocols), moonshot (chassis), importer (from inventories to nodes).
//
// The package does not know HTTP, pages or metrics: web and the server call it.
package hardware
