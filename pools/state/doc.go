// Package state keeps what changes while drover runs, in a bbolt file and a
// journal that survive a crash at any instant: the nodes added over the API, the
// addresses that machines have by lease, the boots of every machine, and the
// machines that nobody declared.
//
// [Open] gives a [Store] with six parts. [Nodes] is the [config.NodeStore] of
// the farm. [Leases] hands out the addresses of catch-all ranges, and remembers
// those that the config does not tell. [Boots] holds the timelines and the
// nonce and key that each boot is bound to. [Unknowns] is the inbox of the
// page, [NextBoots] what nodes do once, [Audit] who did what.
//
// All of it is read from RAM; the file is read once, by Open. Writes that wait
// at the same time share one transaction and so one fsync, and a call that
// promises to be durable returns after it. Commits are some milliseconds
// apart at least, because each costs much more than a write in it. In each
// part the order of changes in RAM is the order in the file, because both are
// taken under the same lock.
//
// Leases are the hottest writes. They go to a journal first, which is folded
// into the file when it is full and when the store is opened or closed (type
// journal). The file and the journal's two, leases.0.log and leases.1.log,
// belong together.
//
// What is not worth an answer that waits is written behind the back of its
// caller: the end of a lease and a quarantine at once, steps of boots within a
// second, the sight of unknown machines within ten. A crash can lose that, in
// this order, and never what was promised.
//
// Whatever a flood of packets makes up is bounded: offers by the ranges,
// leases, boots and unknown machines by constants beside their types.
//
// The file holds no secret: of a nonce and of a key it has the hash alone.
//
// The package does not know why a node is added, what DHCP packet asks for an
// address, who answers there, or who observed a step of a boot. It does not
// check nodes: the farm does, before it stores one.
package state
