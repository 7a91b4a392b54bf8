package wal

// ReadChanges calls each with the changes of a record.
var ReadChanges = readChanges
