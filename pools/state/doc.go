// Package state keeps everything that changes while drover runs, so that it survives
// a crash at any instant: the nodes added over the API, the addresses that machines
// have by lease, the boots of every machine, and the machines that no node declares.
//
// [Open] gives a [Store] with six tables. [Nodes] is the [config.NodeStore]
// of the farm. [Leases] hands out the addresses of catch-all ranges, and remembers
// those that the config does not have. [boots.Table] holds the timelines and the nonce
// and key that each boot is bound to. [Unknowns] is the inbox of the page, [NextBoots]
// holds what nodes do once, [Audit] who did what.
//
// # Durability
//
// RAM is the truth: every table answers from it, and the disk is read once, by Open.
// A table makes a change in RAM and puts it into the queue of the engine under the
// same lock, so that both have the same order. It never waits while it holds a lock. A
// full queue is [ErrBusy]; then nothing has changed. A call that promises to be
// durable waits after the unlock. The end of a lease, a quarantine and the end of a
// next boot are asynchronous: they are durable a moment later, steps of boots within a
// second, the sight of unknown machines within ten. A crash can lose those, and never
// what was promised.
//
// The engine (type wal) is a write-ahead log with snapshots. One goroutine appends
// everything that is queued as one record, with one write and one fdatasync, and takes
// what has been queued since: while the disk is busy, the next batch grows, so that no
// timer is needed to make batches. A record has a CRC-32C, which includes its
// generation and position.
//
// A directory has one or more generations. drover.N.snap is what the tables held when
// drover.N.log began, and drover.N.log has all changes since. When a log exceeds 4 MiB
// and twice the size of the snapshot, the next generation begins: appends go to its
// log at once, and a goroutine writes its snapshot from RAM while the tables go on
// changing. A value that it has too early is in the log, too. When the snapshot is
// durable, the earlier generation is removed; until then Open reads both. Open itself
// always begins a new generation, so that nothing is ever appended to what a crash
// left. A write that fails begins a new one as well: RAM then has changes that the log
// does not, and the snapshot makes up for it.
//
// Open takes a record that is cut off at the end of the newest log for one that a
// crash interrupted. Any other damage is an error that names file, offset and remedy.
//
// drover.db has the number of the format, and is locked by the process that uses the
// directory. Up to format 2 it was a bbolt file; convert.go reads it.
//
// # Another engine
//
// Tables know the interface engine alone, and an engine knows a table by the interface
// table (engine.go). Another engine has to give: an order of writes, all or nothing
// for the changes of one write, a queue that refuses and does not block, waiting for a
// single write, and at the start all values of a table in the order of their keys. It
// may ask a table for everything it holds at any time.
//
// # Bounds
//
// Whatever a flood of packets makes up is bounded: offers by the ranges, leases, boots
// and unknown machines by constants beside their types, writes that wait for the disk
// by maxQueue.
//
// The files hold no secret: of a nonce and of a key they have the hash alone.
//
// The package does not know why a node is added, what DHCP packet asks for an address,
// who answers there, or who observed a step of a boot. It does not check nodes: the
// farm does, before it stores one.
package state
