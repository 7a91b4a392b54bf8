// Package hardware updates the farm's nodes from their chassis, and switches machines.
//
// A [Service] belongs to a running server. For each chassis of the config it has a
// [Sync], which reads the chassis at an interval and stores the changes, all or
// none. The Service executes power requests as jobs, with an audit entry for each
// machine. It opens one connection at a time to a management processor. [Driver] opens
// the BMC of a machine, for the server and the command line.
//
// Below it: bmc (logins, power states, the sequence of commands), sshcli and redfish
// (protocols), moonshot (chassis), importer (from inventories to nodes).
//
// The package does not know HTTP, pages or metrics: web and the server call it.
package hardware
