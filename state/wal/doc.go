// Package wal is a write-ahead log with snapshots. It makes changes of tables durable.
// The tables are in RAM; [Log.Open] alone reads the disk.
//
// A table puts each [Change] into the queue ([Log.Put], [Log.Async]) under the lock
// under which it makes the change in RAM, so that both have the same order. Neither
// waits: a full queue is the error [ErrBusy]. [Log.Wait] waits, after the unlock.
//
// One goroutine, the committer, appends everything that is queued as one record, with
// one write and one fdatasync, and then takes the next batch. While the disk is busy the
// next batch grows, so that batches need no timer. The file of a log is filled with
// zeros before it is used: fdatasync then writes data but no metadata. A record has a
// CRC-32C, which includes its generation and position.
//
// A directory has one or more generations. drover.N.snap has the values of the tables at
// the beginning of drover.N.log, and drover.N.log has all changes since. When a log
// exceeds [Log.Size] and twice the size of the snapshot, the next generation begins:
// appends go to its log, and a goroutine writes its snapshot from RAM while the tables
// change. So a snapshot may contain newer values, which are in the log, too. When the
// snapshot is durable, the earlier generations are removed; until then Open reads both.
// Open itself always begins a new generation, so that nothing is appended to a log that
// a crash has left. A new generation also begins after a failed write, and after an
// asynchronous write that found the queue full: RAM then has changes that the log lacks,
// and the snapshot stores them.
//
// Open leaves out a damaged record, and goes on with the next one that is right: a record
// is valid at its own position in its own generation only. It logs and counts what it
// leaves out, and keeps the damaged files as *.damaged. Only damage that may have lost
// changes of a vital table ([Table].Vital) is an error: the records of a log have a count
// of those with such changes, and a snapshot has the vital values first. A record that is
// cut off at the end of the newest log is no damage: a crash has interrupted its write.
//
// A disk that takes no writes is no reason not to open. Changes are then refused with the
// reason, which [Log.Health] reports. Every second the committer tries to begin a
// generation; its snapshot has all that changed in RAM meanwhile.
//
// The package does not know the meaning of keys and values, nor which process may open
// the directory.
package wal
