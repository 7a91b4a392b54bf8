// Package state keeps what changes while drover runs, in one bbolt file that
// survives a crash at any instant: the nodes added over the API, the addresses
// leased to unknown hardware, and the boots of every machine.
//
// [Open] gives a [Store] with three parts. [Nodes] is the [pools.NodeStore] of
// the farm. [Leases] hands out the addresses of catch-all ranges. [Boots] holds
// the timelines and the nonce and key that each boot is bound to.
//
// All of it is read from RAM; the file is read once, by Open. Writes that wait
// at the same time share one transaction and so one fsync, and a call that
// promises to be durable returns after it. Nothing is delayed to make a larger
// transaction: while one is being synced, the next gathers by itself. In each
// part the order of changes in RAM is the order in the file, because both are
// taken under the same lock.
//
// The file holds no secret: of a nonce and of a key it has the hash alone.
//
// The package does not know why a node is added, what DHCP packet asks for an
// address or who observed a step of a boot. It does not check nodes: the farm
// does, before it stores one.
package state
