package state

import (
	"errors"
	"sync"
)

// Refusals of a write.
var (
	// ErrClosed refuses a write after [Store.Close].
	ErrClosed = errors.New("state is closed")

	// ErrBusy refuses a write because too many wait for the disk already.
	ErrBusy = errors.New("too many writes wait for the disk")
)

// engine makes changes of tables durable; see the package comment.
type engine interface {
	// put queues changes that become durable together or not at all, in the order
	// of the calls. It never waits, so that a table can call it with its lock held.
	// The error is [ErrBusy], [ErrClosed], or says which change is too large; then
	// nothing is queued.
	put(changes ...change) (ticket, error)

	// async is put for changes that no caller waits for. The engine logs those that
	// it cannot store.
	async(changes ...change)

	// wait returns nil once the changes of a ticket are durable, else the reason
	// why they are not. It can be called more than once.
	wait(ticket) error

	// lost reports whether the changes of a ticket are known not to be stored.
	lost(ticket) bool
}

// ticket is the number of the batch that changes were put into. The zero ticket is
// durable.
type ticket uint64

// table is the side of a table that an engine uses.
type table interface {
	// load adds a stored value. It is called in the order of the keys, before any
	// other method of the table.
	load(key, value []byte) error

	// each calls put with everything that the table holds. It holds the table's lock
	// meanwhile, but not all the time: every few values it lets the lock go and calls
	// between, whose error ends it. A value that changes meanwhile can be the old or
	// the new one. The slices are put's until it returns.
	each(put func(key, value []byte), between func() error) error
}

// visitChunk is how many entries visit goes through before it lets others have the
// lock: a tenth of a millisecond.
const visitChunk = 64

// visit calls f for the entries of a map under a lock, and between without it every
// few entries. A Go map may change between two steps of a loop over it: the loop
// has every entry that is there all the time.
func visit[K comparable, V any](mu *sync.Mutex, m map[K]V, f func(K, V), between func() error) error {
	mu.Lock()
	defer mu.Unlock()
	n := 0
	for k, v := range m {
		f(k, v)
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
