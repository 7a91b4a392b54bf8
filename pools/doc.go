// Package pools holds the types of drover's domain: the operator's file and its values,
// the firmware of machines, their leases, the slots of a chassis.
//
// A [Config] is the operator's file. A [Node] is a machine with one or more MACs, a
// [Pool] is a group of nodes that boot one image and join one [Cluster], and a [Tag] is
// a named bundle of settings that pools and nodes refer to in order. An [Origin] is where
// a value was set.
//
// Package pools/config reads and checks the file. Package pools/resolve has the result,
// a Farm, and its one question: which machine asks, and what does it get?
//
// The package also holds the messages between server and node during a boot
// (wire.go): [NodeConfig], [JoinConfig], and the sealing of the answers that
// carry secrets. The steps that a node reports are in package boots.
//
// It knows nothing of sockets, files, YAML, Kubernetes clients or images; it
// imports the standard library only.
package pools
