package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// contents is the values of all tables, by table and key.
type contents map[TableID]map[string][]byte

// apply makes a change.
func (c contents) apply(o Change) error {
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

// ErrDamaged is the error of files that are damaged in a way that may have lost values
// of a table with Table.Vital.
var ErrDamaged = errors.New("the state is damaged")

// replay reads the newest snapshot in the directory and the logs since. It returns their
// contents, and the last log, with generation 0 if there is none. It leaves out what is
// damaged.
func (l *Log) replay() (c contents, last segment, err error) {
	c = contents{}
	snapshots, err := generations(l.Dir, snapshotPattern)
	if err != nil {
		return c, last, err
	}
	logs, err := generations(l.Dir, logPattern)
	if err != nil {
		return c, last, err
	}
	next := uint64(1)
	if n := len(snapshots); n > 0 {
		next = snapshots[n-1]
		if err := l.readSnapshot(c, next); err != nil {
			return c, last, err
		}
		logs = slices.DeleteFunc(logs, func(g uint64) bool { return g < next }) // a crash left them
	}
	for len(logs) > 0 || len(snapshots) > 0 && last.generation == 0 {
		if len(logs) == 0 || logs[0] != next {
			if err := l.lose(true, 0, logPattern+" is missing", next); err != nil {
				return c, last, err
			}
			last = segment{generation: next} // go on with those that are there
			next++
			continue
		}
		if last, err = l.readLog(c, next, last, len(snapshots) > 0); err != nil {
			return c, last, err
		}
		logs, next = logs[1:], next+1
	}
	return c, last, nil
}

// restSize is the size of the record with keyRest.
const restSize = recordHeader + 3 + int64(len(keyRest)) + 1

func (l *Log) readSnapshot(c contents, generation uint64) error {
	name := fmt.Sprintf(snapshotPattern, generation)
	content, err := os.ReadFile(filepath.Join(l.Dir, name))
	if err != nil {
		return err
	}
	rest, complete := false, false
	each := func(_ int64, changes []byte) error {
		complete = len(changes) == 0
		return readChanges(changes, func(o Change) error {
			if o.Table == tableLog {
				rest = rest || string(o.Key) == keyRest
				return nil
			}
			return c.apply(o)
		})
	}
	end, err := ReadRecords(content, generation, each, func(from, to int64) error {
		return l.lose(!rest && to-from > restSize, to-from, "%s: damaged record at offset %d, %d bytes", name, from, to-from)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	size := int64(len(content))
	switch {
	case !complete:
		return l.lose(!rest, size-end, "%s: cut off or damaged at offset %d, %d bytes", name, end, size-end)
	case end < size:
		return l.lose(false, size-end, "%s: %d bytes behind the end", name, size-end)
	}
	return nil
}

// readLog applies the changes of a log. before is the previous log.
func (l *Log) readLog(c contents, generation uint64, before segment, hasSnapshot bool) (segment, error) {
	s := segment{name: fmt.Sprintf(logPattern, generation), generation: generation}
	content, err := os.ReadFile(filepath.Join(l.Dir, s.name))
	if err != nil {
		return s, err
	}
	each := func(at int64, changes []byte) error {
		vital, counted := false, uint64(0)
		err := readChanges(changes, func(o Change) error {
			if o.Table == tableLog {
				counted = max(counted, s.note(o))
				return nil
			}
			vital = vital || l.Tables[o.Table].Vital != ""
			return c.apply(o)
		})
		if err == nil && at == 0 {
			err = l.checkEnd(before, s)
		}
		if vital {
			s.vital++
		}
		if err == nil && counted > s.vital {
			err = l.lose(true, 0, "%s: a damaged record before offset %d", s.name, at)
		}
		s.vital = max(s.vital, counted)
		return err
	}
	s.end, err = ReadRecords(content, generation, each, func(from, to int64) error {
		return l.lose(false, to-from, "%s: damaged record at offset %d, %d bytes", s.name, from, to-from)
	})
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.name, err)
	}
	return s, l.checkTail(s, content, hasSnapshot && before.generation == 0)
}

// note keeps a value of the log's own table. It returns the number of vital records up
// to the record, if the value says it.
func (s *segment) note(o Change) (vital uint64) {
	n, _ := binary.Uvarint(o.Value)
	switch string(o.Key) {
	case keyEnd:
		s.before = int64(n)
	case keyVitalBefore:
		s.vitalBefore = n
	case keyVital:
		return n
	}
	return 0
}

// checkEnd compares the end of a log with that in the first record of the next one.
func (l *Log) checkEnd(before, s segment) error {
	if before.generation == 0 || before.name == "" || before.end >= s.before {
		return nil
	}
	return l.lose(s.vitalBefore > before.vital, s.before-before.end, "%s: damaged record at offset %d, %d bytes", before.name, before.end, s.before-before.end)
}

// checkTail reports the bytes behind the last record of a log. After a crash they are a
// record that was never acknowledged. Behind the last record there is always room for
// another one, so a log without it was cut off.
func (l *Log) checkTail(s segment, content []byte, hasSnapshot bool) error {
	tail := content[s.end:]
	if len(tail) < recordHeader && (s.end > 0 || hasSnapshot) {
		return l.lose(false, 0, "%s: cut off at offset %d", s.name, s.end)
	}
	if n := len(bytes.TrimRight(tail, "\x00")); n > 0 {
		l.Logger.Warn("ignoring the end of a log: a crash cut off its last write, or it is damaged", "file", s.name, "offset", s.end, "bytes", n)
	}
	return nil
}
