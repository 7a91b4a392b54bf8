package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// contents is what all tables hold: values by table and key.
type contents map[tableID]map[string][]byte

func (c contents) apply(o change) error {
	if o.table > tableAudit {
		return fmt.Errorf("unknown table %d", o.table)
	}
	switch {
	case o.value == nil:
		delete(c[o.table], string(o.key))
	case c[o.table] == nil:
		c[o.table] = map[string][]byte{string(o.key): o.value}
	default:
		c[o.table][string(o.key)] = o.value
	}
	return nil
}

// loadInto hands everything to the tables.
func (c contents) loadInto(tables map[tableID]table) error {
	for id, t := range tables {
		for _, key := range slices.Sorted(maps.Keys(c[id])) {
			if err := t.load([]byte(key), c[id][key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// replay reads the newest snapshot in dir and the logs since. It returns what they
// hold, and the last log; its generation is 0 when there is none.
func replay(dir string) (c contents, last segment, err error) {
	c = contents{}
	snapshots, err := generations(dir, snapshotPattern)
	if err != nil {
		return c, last, err
	}
	logs, err := generations(dir, logPattern)
	if err != nil {
		return c, last, err
	}
	first := uint64(1)
	if n := len(snapshots); n > 0 {
		first = snapshots[n-1]
		if err := c.readSnapshot(dir, first); err != nil {
			return c, last, err
		}
		logs = slices.DeleteFunc(logs, func(g uint64) bool { return g < first }) // a crash left them
	}
	for i, g := range logs {
		if want := first + uint64(i); g != want {
			return c, last, fmt.Errorf("%s is missing: restore the state directory from a backup", filepath.Join(dir, logName(want)))
		}
		if last, err = c.readLog(dir, g, last); err != nil {
			return c, last, err
		}
	}
	if len(snapshots) > 0 && len(logs) == 0 {
		return c, last, fmt.Errorf("%s is missing: restore the state directory from a backup", filepath.Join(dir, logName(first)))
	}
	return c, last, nil
}

func (c contents) readSnapshot(dir string, generation uint64) error {
	path := filepath.Join(dir, snapshotName(generation))
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	complete := false
	end, err := readRecords(content, generation, func(changes []byte) error {
		complete = len(changes) == 0
		return readChanges(changes, c.apply)
	})
	if err == nil && (!complete || end != int64(len(content))) {
		err = fmt.Errorf("%w at offset %d", errDamaged, end)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: restore the state directory from a backup, or move it away to start anew", path, err)
	}
	return nil
}

// readLog adds the changes of a log, which follows the one before.
func (c contents) readLog(dir string, generation uint64, before segment) (segment, error) {
	s := segment{name: logName(generation), generation: generation}
	path := filepath.Join(dir, s.name)
	content, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	s.end, err = readRecords(content, generation, func(changes []byte) error {
		return readChanges(changes, func(o change) error {
			if o.table == tableLog {
				n, _ := binary.Uvarint(o.value)
				s.before = int64(n)
				return nil
			}
			return c.apply(o)
		})
	})
	if err == nil && before.generation != 0 && s.end > 0 && before.end < s.before {
		path, s.end = filepath.Join(dir, before.name), before.end
		err = fmt.Errorf("%w at offset %d, before its end at %d", errDamaged, before.end, s.before)
	}
	if errors.Is(err, errDamaged) {
		err = fmt.Errorf("%w: restore the state directory from a backup; or, to go on without all later changes, remove the logs after this one, if any, and run truncate -s %d %s", err, s.end, path)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
