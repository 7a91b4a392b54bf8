// Package resolve finds the machine that asks, and its settings for a boot.
//
// There is one question, [Farm.Resolve]: a [Query] (a MAC and the options that its
// firmware sent) goes in. A [Plan] comes out, or nil for a machine that drover does not
// serve. Each protocol of drover translates the Plan, and decides nothing. [Plan.Why]
// returns where each value of a Plan was set.
//
// A [Farm] is a config that was checked as a whole, together with the nodes added over
// the API. Package pools/config checks it and makes the Farm; package pools has the types
// of the config.
//
// Like package pools, it knows nothing of sockets, files, YAML, Kubernetes clients or
// images.
package resolve
