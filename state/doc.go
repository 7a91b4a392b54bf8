// Package state stores the data that changes while drover runs, so that it survives a
// crash at any instant: the nodes added over the API, the leases, the boots of every
// machine, and the unknown machines.
//
// [Open] returns a [Store] with its tables. [Nodes] is the config.NodeStore of the farm.
// [Leases] assigns the addresses of catch-all ranges, and remembers the machines at
// addresses outside of the config. [boots.Table] holds the timelines, and the nonce and
// the key of each boot. [Unknowns] holds the machines that no node declares, [NextBoots]
// the next boots that differ from the config, [Retired] the nodes that the config has lost,
// [Configs] the contents of the config file that were active, [Channels] the generations that the
// names of images mean, [FallBacks] those that were Ready on a node and those that were not, and
// [Audit] the actions of users.
//
// Tables read only from RAM. A table makes a change in RAM and puts it into the queue of
// its engine under the same lock, and never waits while it holds the lock. A full queue
// is the error [wal.ErrBusy]; then nothing has changed. A call that is documented as
// durable waits after the unlock. The end of a lease, a quarantine and the end of a next
// boot are asynchronous. They are durable a moment later, steps of boots within a
// second, and unknown machines within ten seconds. A crash can lose such changes, but
// never a durable one.
//
// The engine is package wal. The file drover.db has the number of the format, and is
// locked by the process that uses the directory.
//
// Tables use only the interface engine. Another engine has to provide ordered writes,
// atomic writes of several changes, a queue that refuses instead of blocking, waiting
// for a single write, and, at the start, all values of a table in the order of their
// keys. It may read all values of a table at any time (wal.Table).
//
// A flood of packets cannot fill the memory: the ranges limit the offers, constants
// limit leases, boots and unknown machines, and the queue limits the writes.
//
// Open leaves out damaged values, except nodes, and reports them. While the disk takes no
// writes, tables refuse changes with the reason, except two: the end of a lease is in
// force in RAM, and a boot gets a nonce that is stored together with its claim, or
// not at all. A lease is stored with its length, so that a clock that is set by years
// neither ends a lease nor makes it last for years.
//
// Nonces and keys are stored as hashes. The texts of Configs have the secrets of the config file:
// only the user of the server can read the files.
//
// The package does not know why a node is added, which DHCP packet requests an address,
// which device answers there, or where a step of a boot was observed. It does not check
// nodes: the farm does, before it stores one.
package state
