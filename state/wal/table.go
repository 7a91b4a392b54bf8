package wal

import (
	"errors"
	"sync"

	"drover/internal/atomicfile"
)

// Errors of a write.
var (
	// ErrClosed refuses a write after [Log.Close].
	ErrClosed = errors.New("state is closed")

	// ErrBusy refuses a write because too many wait for the disk already.
	ErrBusy = errors.New("too many writes wait for the disk")

	// ErrHangs gives up a write because the disk takes none.
	ErrHangs = atomicfile.ErrHangs
)

// TableID is the number of a table in the log, 1 or more.
type TableID byte

// Table is the functions of a table that a log calls.
type Table struct {
	// Vital is the plural of a value of the table, for messages. Open returns an
	// error if it cannot read such a value, unless [Log.AcceptLoss] is set. Damaged
	// values of a table with an empty Vital are left out.
	Vital string

	// Load adds a stored value. It is called in the order of the keys, before Each.
	// After an error the table does not have the value.
	Load func(key, value []byte) error

	// Each calls put with all values of the table under its lock, and between
	// without the lock; see [Visit]. A value that changes meanwhile can be the old
	// or the new one. put must not retain the slices.
	Each func(put func(key, value []byte), between func() error) error
}

// visitChunk is the number of values that Visit handles before it releases the lock, in
// about a tenth of a millisecond.
const visitChunk = 64

// Visit calls f for each value of a map under a lock. After every visitChunk values it
// calls between without the lock. An error of either ends it. The map may change during
// between: a Go loop over a map visits every value that stays in it.
func Visit[K comparable, V any](mu *sync.Mutex, m map[K]V, f func(K, V) error, between func() error) error {
	mu.Lock()
	defer mu.Unlock()
	n := 0
	for k, v := range m {
		if err := f(k, v); err != nil {
			return err
		}
		if n++; n%visitChunk != 0 {
			continue
		}
		mu.Unlock()
		err := between()
		mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}
