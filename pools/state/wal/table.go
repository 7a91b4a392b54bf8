package wal

import (
	"errors"
	"sync"
)

// Refusals of a write.
var (
	// ErrClosed refuses a write after [Log.Close].
	ErrClosed = errors.New("state is closed")

	// ErrBusy refuses a write because too many wait for the disk already.
	ErrBusy = errors.New("too many writes wait for the disk")
)

// TableID is the number of a table in the log, 1 or more.
type TableID byte

// Table is what a log needs of a table.
type Table struct {
	// Load adds a stored value. It is called in the order of the keys, before
	// anything else.
	Load func(key, value []byte) error

	// Each calls put with everything that the table holds. It holds the table's lock
	// meanwhile, but not all the time: see [Visit]. A value that changes meanwhile can
	// be the old or the new one. The slices are put's until it returns.
	Each func(put func(key, value []byte), between func() error) error
}

// visitChunk is how many entries Visit goes through before it lets others have the
// lock: a tenth of a millisecond.
const visitChunk = 64

// Visit calls f for the entries of a map under a lock, and between without it every
// few entries; an error of either ends it. A Go map may change between two steps of a
// loop over it: the loop visits every entry that stays in it.
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
