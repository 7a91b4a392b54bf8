package state

import "drover/pools/boots"

// bootStorage is the [boots.Storage] of the engine.
type bootStorage struct{ engine engine }

func (b bootStorage) Enqueue(all ...boots.Change) (wait func() error, err error) {
	changes := make([]change, len(all))
	for i, c := range all {
		changes[i] = change{tableBoots, []byte(c.ID), c.Value}
	}
	t, err := b.engine.put(changes...)
	if err != nil {
		return nil, err
	}
	return func() error { return b.engine.wait(t) }, nil
}

// bootTable is the [table] of boots.
type bootTable struct{ *boots.Table }

func (b bootTable) load(key, value []byte) error { return b.Load(string(key), value) }

func (b bootTable) each(put func(key, value []byte), between func() error) error {
	return b.Each(func(c boots.Change) { put([]byte(c.ID), c.Value) }, between)
}
