package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Contents is the values of all tables, by table and key.
type Contents map[TableID]map[string][]byte

// Apply makes a change.
func (c Contents) Apply(o Change) error {
	if o.Value == nil {
		delete(c[o.Table], string(o.Key))
		return nil
	}
	if c[o.Table] == nil {
		c[o.Table] = make(map[string][]byte)
	}
	c[o.Table][string(o.Key)] = o.Value
	return nil
}

// Open reads the disk into the tables, and starts to accept changes.
func (l *Log) Open() error {
	c, last, err := replay(l.Dir)
	if err != nil {
		return err
	}
	return l.begin(c, last)
}

// Import is Open with contents that replace those on disk.
func (l *Log) Import(c Contents) error {
	if err := l.removeBefore(math.MaxUint64); err != nil {
		return err
	}
	return l.begin(c, segment{})
}

// begin fills the tables and begins the generation after the last one.
func (l *Log) begin(c Contents, last segment) error {
	for id, values := range c {
		t, ok := l.Tables[id]
		if !ok {
			return fmt.Errorf("%s: unknown table %d", l.Dir, id)
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if err := t.Load([]byte(key), values[key]); err != nil {
				return fmt.Errorf("%s: %w", l.Dir, err)
			}
		}
	}
	current, err := l.createSegment(last.generation + 1)
	if err != nil {
		return err
	}
	current.before = last.end
	l.start(current)
	if err := l.snapshot(current.generation); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// replay reads the newest snapshot in dir and the logs since. It returns their contents,
// and the last log, with generation 0 if there is none.
func replay(dir string) (c Contents, last segment, err error) {
	c = Contents{}
	snapshots, err := generations(dir, snapshotPattern)
	if err != nil {
		return c, last, err
	}
	logs, err := generations(dir, logPattern)
	if err != nil {
		return c, last, err
	}
	next := uint64(1)
	if n := len(snapshots); n > 0 {
		next = snapshots[n-1]
		if err := c.readSnapshot(dir, next); err != nil {
			return c, last, err
		}
		logs = slices.DeleteFunc(logs, func(g uint64) bool { return g < next }) // a crash left them
	}
	for len(logs) > 0 || len(snapshots) > 0 && last.generation == 0 {
		if len(logs) == 0 || logs[0] != next {
			return c, last, fmt.Errorf("%s is missing: restore the state directory from a backup", filepath.Join(dir, fmt.Sprintf(logPattern, next)))
		}
		if last, err = c.readLog(dir, next, last); err != nil {
			return c, last, err
		}
		logs, next = logs[1:], next+1
	}
	return c, last, nil
}

func (c Contents) readSnapshot(dir string, generation uint64) error {
	path := filepath.Join(dir, fmt.Sprintf(snapshotPattern, generation))
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	complete := false
	end, err := ReadRecords(content, generation, func(changes []byte) error {
		complete = len(changes) == 0
		return readChanges(changes, c.Apply)
	})
	if err == nil && (!complete || end != int64(len(content))) {
		err = fmt.Errorf("%w at offset %d", errDamaged, end)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: restore the state directory from a backup, or move it away to start anew", path, err)
	}
	return nil
}

// readLog applies the changes of a log. before is the previous log.
func (c Contents) readLog(dir string, generation uint64, before segment) (segment, error) {
	s := segment{name: fmt.Sprintf(logPattern, generation), generation: generation}
	path := filepath.Join(dir, s.name)
	content, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	s.end, err = ReadRecords(content, generation, func(changes []byte) error {
		return readChanges(changes, func(o Change) error {
			if o.Table == tableLog {
				n, _ := binary.Uvarint(o.Value)
				s.before = int64(n)
				return nil
			}
			return c.Apply(o)
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
