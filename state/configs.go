package state

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"drover/pools"
	"drover/state/wal"
)

// Bounds of the texts of the configs that are kept, compressed, in bytes. The text of 10 000 nodes
// takes some 150 000.
const (
	maxConfigText  = 3 << 20 // of one; a longer one is kept without its text
	maxConfigTexts = 8 << 20 // of all
)

// maxConfigSize bounds what a text is decompressed to, in bytes.
const maxConfigSize = 16 << 20

// Configs keeps the last [pools.MaxConfigs] contents of the config file that were active, with
// their texts. These may have secrets: they are in the files of the state alone.
type Configs struct{ rows[keptConfig] }

// keptConfig is a config with its text, the JSON of a [configText] compressed by gzip; empty if it
// is too long.
type keptConfig struct {
	pools.ConfigEntry
	Text []byte `json:"text,omitempty"`
}

// configText is the text of a config.
type configText struct {
	Content  string             `json:"content"`
	Included []pools.ConfigPart `json:"included,omitempty"`
}

func configKey(number int) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(number))) //nolint:gosec // numbers begin with 1
}

// load refuses what Add has not written.
func (c *Configs) load(key, value []byte) error {
	if err := c.rows.load(key, value); err != nil {
		return err
	}
	if e := c.values[string(key)]; e.Number < 1 || configKey(e.Number) != string(key) {
		delete(c.values, string(key))
		return fmt.Errorf("table %d: the config of %q has the number %d", c.id, key, e.Number)
	}
	return nil
}

// Add keeps a config, and returns its number. The oldest ones make room. It does not wait for the
// disk, and cannot fail: the change is durable a moment later.
func (c *Configs) Add(v pools.ConfigVersion) (number int) {
	kept := keptConfig{ConfigEntry: v.ConfigEntry, Text: compressed(configText{v.Content, v.Included})}
	c.mu.Lock()
	defer c.mu.Unlock()
	kept.Number = 1
	for _, e := range c.values {
		kept.Number = max(kept.Number, e.Number+1)
	}
	key := configKey(kept.Number)
	change, err := c.set(key, kept)
	if err != nil {
		return 0 // an entry is always JSON
	}
	c.values[key] = kept
	changes := []wal.Change{change}
	for _, old := range c.surplus() {
		delete(c.values, old)
		changes = append(changes, c.remove(old))
	}
	c.engine.Async(changes...)
	return kept.Number
}

// surplus returns the keys of the configs that are too many, or too long together. The newest one
// stays.
func (c *Configs) surplus() (keys []string) {
	size := 0
	for i, key := range slices.Backward(slices.Sorted(maps.Keys(c.values))) {
		size += len(c.values[key].Text)
		if rank := len(c.values) - 1 - i; rank >= pools.MaxConfigs || rank > 0 && size > maxConfigTexts {
			keys = append(keys, key)
		}
	}
	return keys
}

// List returns the configs without their texts, the newest first.
func (c *Configs) List() []pools.ConfigEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []pools.ConfigEntry{}
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(c.values))) {
		all = append(all, c.values[key].ConfigEntry)
	}
	return all
}

// Get returns the config of a number. The error wraps [pools.ErrNoConfig] if there is none, or its
// text was too long.
func (c *Configs) Get(number int) (v pools.ConfigVersion, err error) {
	if number < 1 {
		return v, fmt.Errorf("%w: %d", pools.ErrNoConfig, number)
	}
	c.mu.Lock()
	kept, ok := c.values[configKey(number)]
	c.mu.Unlock()
	switch {
	case !ok:
		return v, fmt.Errorf("%w: %d", pools.ErrNoConfig, number)
	case len(kept.Text) == 0:
		return v, fmt.Errorf("%w: the text of %d was too long to be kept", pools.ErrNoConfig, number)
	}
	text, err := decompressed(kept.Text)
	return pools.ConfigVersion{ConfigEntry: kept.ConfigEntry, Content: text.Content, Included: text.Included}, err
}

// compressed returns the text for [decompressed]; nil if it is too long.
func compressed(t configText) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	err := json.NewEncoder(w).Encode(t)
	if err != nil || w.Close() != nil || b.Len() > maxConfigText {
		return nil
	}
	return b.Bytes()
}

func decompressed(data []byte) (t configText, err error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(r, maxConfigSize)).Decode(&t)
	}
	if err != nil {
		return t, fmt.Errorf("the text of the config in the state is damaged: %w", err)
	}
	return t, nil
}
