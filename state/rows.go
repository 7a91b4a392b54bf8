package state

import (
	"encoding/json"
	"fmt"
	"sync"

	"drover/state/wal"
)

// rows is a table of values that are stored as JSON.
type rows[V any] struct {
	engine engine
	id     wal.TableID
	mu     sync.Mutex
	values map[string]V
}

func newRows[V any](e engine, id wal.TableID) rows[V] {
	return rows[V]{engine: e, id: id, values: make(map[string]V)}
}

func (r *rows[V]) load(key, value []byte) error {
	var v V
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("table %d: value of %q: %w", r.id, key, err)
	}
	r.values[string(key)] = v
	return nil
}

func (r *rows[V]) each(put func(key, value []byte), between func() error) error {
	return wal.Visit(&r.mu, r.values, func(key string, v V) error {
		c, err := r.set(key, v)
		put(c.Key, c.Value)
		return err
	}, between)
}

// set returns the change that stores a value.
func (r *rows[V]) set(key string, v V) (wal.Change, error) {
	value, err := json.Marshal(v)
	return wal.Change{Table: r.id, Key: []byte(key), Value: value}, err
}

// remove returns the change that deletes a value.
func (r *rows[V]) remove(key string) wal.Change { return wal.Change{Table: r.id, Key: []byte(key)} }

func (r *rows[V]) get(key string) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[key]
}
