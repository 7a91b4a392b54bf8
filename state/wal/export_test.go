package wal

import "os"

// ReadChanges calls each with the changes of a record.
var ReadChanges = readChanges

// Datasync returns the function that makes data durable, and whether it uses AIO.
func Datasync(t interface{ Cleanup(func()) }) (sync func(*os.File) error, aio bool) {
	d := new(datasync)
	d.open()
	t.Cleanup(d.close)
	return d.sync, d.event != nil
}
