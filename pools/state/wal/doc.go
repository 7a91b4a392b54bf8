// Package wal makes changes of tables durable: a write-ahead log with snapshots. The
// tables are in RAM and are the truth; the disk is read once, by [Log.Open].
//
// A table puts each [Change] into the queue ([Log.Put], [Log.Async]) under the lock
// under which it makes the change in RAM, so that both have the same order. That never
// waits: a full queue is [ErrBusy]. [Log.Wait] waits, after the unlock.
//
// One goroutine, the committer, appends everything that is queued as one record, with
// one write and one fdatasync, and takes what has been queued since. While the disk is
// busy the next batch grows, so that no timer is needed to make batches. The file of a
// log consists of zeros before it is used: fdatasync then has data to write but no
// metadata. A record has a CRC-32C, which includes its generation and position.
//
// A directory has one or more generations. drover.N.snap is what the tables held when
// drover.N.log began, and drover.N.log has all changes since. When a log exceeds
// [Log.Size] and twice the size of the snapshot, the next generation begins: appends go
// to its log, and a goroutine writes its snapshot from RAM while the tables go on
// changing. A value that the snapshot has too early is in the log, too. When the
// snapshot is durable, the earlier generations are removed; until then Open reads
// both. Open itself always begins a new generation, so that nothing is ever appended to
// what a crash left. A write that fails, or an asynchronous one that found the queue
// full, begins a new one as well: RAM then has changes that the log does not, and the
// snapshot makes up for it.
//
// Open takes a record that is cut off at the end of the newest log for one that a
// crash interrupted. Any other damage is an error that names file, offset and remedy.
//
// The package does not know what keys and values are, nor which process may open the
// directory.
package wal
