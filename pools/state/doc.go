// Package state keeps everything that changes while drover runs, so that it survives
// a crash at any instant: the nodes added over the API, the addresses that machines
// have by lease, the boots of every machine, and the machines that no node declares.
//
// [Open] gives a [Store] with six tables. [Nodes] is the config.NodeStore of the
// farm. [Leases] hands out the addresses of catch-all ranges, and remembers those that
// the config does not have. [boots.Table] holds the timelines and the nonce and key
// that each boot is bound to. [Unknowns] is the inbox of the page, [NextBoots] holds
// the next boots that differ from the config, [Audit] the actions of users.
//
// RAM is the truth: every table answers from it. A table makes a change in RAM and
// puts it into the queue of its engine under the same lock, and never waits while it
// holds one. A full queue is [wal.ErrBusy]; then nothing has changed. A call that
// promises to be durable waits after the unlock. The end of a lease, a quarantine and
// the end of a next boot are asynchronous: they are durable a moment later, steps of
// boots within a second, the sight of unknown machines within ten. A crash can lose
// those, and never what was promised.
//
// The engine is package wal. drover.db has the number of the format, and is locked by
// the process that uses the directory. Up to format 2 it was a bbolt file, which Open
// converts.
//
// Tables know the interface engine alone. Another engine has to give: an order of
// writes, all or nothing for the changes of one write, a queue that refuses and does not
// block, waiting for a single write, and at the start all values of a table in the order
// of their keys. It may ask a table for everything it holds at any time (wal.Table).
//
// Whatever a flood of packets makes up is bounded: offers by the ranges, leases, boots
// and unknown machines by constants beside their types, writes by the queue.
//
// The files hold no secret: of a nonce and of a key they have the hash alone.
//
// The package does not know why a node is added, which DHCP packet asks for an address,
// which device answers there, or where a step of a boot was observed. It does not check nodes: the
// farm does, before it stores one.
package state
