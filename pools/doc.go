// Package pools is the domain of drover: the pool that a machine belongs to, and its
// settings for a boot.
//
// There are few types. A [Config] is the operator's file. A [Farm] is a config
// that was checked as a whole, together with the nodes added over the API. A
// [Node] is a machine with one or more MACs, a [Pool] is a group of nodes that
// boot one image and join one [Cluster], and a [Tag] is a named bundle of
// settings that pools and nodes refer to in order.
//
// There is one question, [Farm.Resolve]: a [Query] (a MAC and the options that its
// firmware sent) goes in. A [Plan] comes out, or nil for a machine that drover does not
// serve. Each protocol of drover translates the Plan, and decides nothing. [Plan.Why]
// returns where each value of a Plan was set.
//
// Package pools/config reads and checks the operator's file.
//
// The package also holds the messages between server and node during a boot
// (wire.go): [NodeConfig], [JoinConfig], and the sealing of the answers that
// carry secrets. The steps that a node reports are in package boots.
//
// It knows nothing of sockets, files, YAML, Kubernetes clients or images; it
// imports the standard library only.
package pools
