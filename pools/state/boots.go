package state

import (
	"errors"

	"go.etcd.io/bbolt"

	"drover/pools/boots"
)

// errQueueFull refuses a write that nobody may wait for: the disk does not keep
// up.
var errQueueFull = errors.New("too many writes wait for the disk")

// bootStorage is the [boots.Storage] in the state file.
type bootStorage struct{ store *Store }

func (b bootStorage) Enqueue(changes ...boots.Change) (wait func() error, err error) {
	ops := make([]op, len(changes))
	for i, c := range changes {
		ops[i] = op{bucketBoots, []byte(c.ID), c.Value}
	}
	w := &write{ops: ops, done: make(chan error, 1)}
	b.store.mu.RLock()
	defer b.store.mu.RUnlock()
	if b.store.closed {
		return nil, ErrClosed
	}
	if err := check(ops); err != nil {
		return nil, err
	}
	select {
	case b.store.table.queue <- w:
		return w.wait, nil
	default:
		return nil, errQueueFull
	}
}

// loadBoots reads the boots of the file, which has them in the order of their IDs.
func loadBoots(t *boots.Table, bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(key, value []byte) error { return t.Load(string(key), value) })
}
