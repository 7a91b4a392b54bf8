package state

import (
	"errors"
	"fmt"

	"drover/pools/boots"
	"drover/state/wal"
)

// bootStorage implements [boots.Storage] with the engine.
type bootStorage struct{ engine engine }

func (b bootStorage) Enqueue(all ...boots.Change) (wait func() error, err error) {
	changes := make([]wal.Change, len(all))
	for i, c := range all {
		changes[i] = wal.Change{Table: tableBoots, Key: []byte(c.ID), Value: c.Value}
	}
	t, err := b.engine.Put(changes...)
	if err != nil {
		return nil, unavailable(err)
	}
	return func() error { return unavailable(b.engine.Wait(t)) }, nil
}

// unavailable wraps an error of the engine for [boots.Storage]. A full queue passes soon,
// or becomes another error.
func unavailable(err error) error {
	if err == nil || errors.Is(err, wal.ErrClosed) || errors.Is(err, wal.ErrBusy) {
		return err
	}
	return fmt.Errorf("%w: %w", boots.ErrUnavailable, err)
}

func bootTable(t *boots.Table) wal.Table {
	return wal.Table{
		Load: func(key, value []byte) error { return t.Load(string(key), value) },
		Each: func(put func(key, value []byte), between func() error) error {
			return t.Each(func(c boots.Change) { put([]byte(c.ID), c.Value) }, between)
		},
	}
}
