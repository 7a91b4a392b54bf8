package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/state/wal"
)

// formatBolt is the last format that earlier versions wrote: a bbolt file with a bucket
// for each table, and two journals of leases beside it. The records of generation N are
// in leases.(N mod 2).log. The key "journal" of the bucket meta has the first generation
// that is not in the bbolt file yet.
const formatBolt = 2

// oldBuckets are the buckets of formatBolt.
var oldBuckets = map[string]wal.TableID{
	"nodes": tableNodes, "leases": tableLeases, "boots": tableBoots,
	"unknown": tableUnknowns, "next": tableNext, "audit": tableAudit,
}

// convert fills the tables from the state file of an earlier version, writes them in
// the current format, and replaces the state file. A crash before the replacement leaves
// the earlier state in force. If the disk takes no writes, the replacement happens when
// it does, and until then no change is stored.
func (s *Store) convert(path string, content []byte) error {
	c := &oldContents{wal.Contents{}, s.engine.Lose}
	if err := c.readFile(content, path); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := s.engine.Import(c.Contents, func() error { return s.replaceOld(path) }); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// replaceOld writes the state file of the current format, and renames the files of the
// earlier one to *.old. It can be called again after an error.
func (s *Store) replaceOld(path string) error {
	if !s.isCurrent(path) {
		err := os.Remove(path + ".old")
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = os.Link(path, path+".old")
		}
		if err == nil {
			err = atomicfile.Write(path, []byte(formatFile), 0o600)
		}
		if err != nil {
			return err
		}
	}
	for generation := range uint64(2) {
		name := oldJournal(filepath.Dir(path), generation)
		if err := os.Rename(name, name+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) { // format 1 had none
			return err
		}
	}
	f, err := lock(path, 0)
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.lock
	s.lock = f
	s.mu.Unlock()
	s.log.Info("state of an earlier version converted", "file", path, "kept", path+".old")
	return old.Close()
}

// oldContents is the contents of a state directory of an earlier version.
type oldContents struct {
	wal.Contents

	// lose reports a damaged part: see [wal.Log.Lose].
	lose func(vital bool, bytes int64, format string, args ...any) error
}

// readFile reads a bbolt file and the journals beside it.
func (c *oldContents) readFile(content []byte, path string) error {
	b, err := openBolt(content)
	if err != nil {
		return c.lose(true, 0, "not a state file of drover, or damaged: %v", err)
	}
	vital := true // the root leads to all buckets
	b.lost = func(err error) error { return c.lose(vital, 0, "%v", err) }
	buckets, err := b.buckets()
	if err != nil {
		return err
	}
	journal, err := c.readMeta(b, buckets["meta"])
	if err != nil {
		return err
	}
	for name, id := range oldBuckets {
		if value, ok := buckets[name]; ok {
			vital = id == tableNodes
			if err := b.bucket(value, func(key, value []byte) error { return c.addOrLose(id, key, value) }); err != nil {
				return err
			}
		}
	}
	return c.readJournals(filepath.Dir(path), journal)
}

// readMeta checks the format, and returns the first generation of the journals.
func (c *oldContents) readMeta(b *boltFile, bucket []byte) (journal uint64, err error) {
	if bucket == nil { // as in a new file
		return 0, nil
	}
	meta := make(map[string]string)
	if err := b.bucket(bucket, func(key, value []byte) error { meta[string(key)] = string(value); return nil }); err != nil {
		return 0, err
	}
	if err := checkFormat(meta["format"], formatBolt); err != nil {
		return 0, err
	}
	if v, ok := meta["journal"]; ok {
		if journal, err = strconv.ParseUint(v, 10, 64); err != nil {
			return 0, c.lose(true, 0, "journal generation %q is not a number", v)
		}
	}
	return journal, nil
}

func (c *oldContents) readJournals(dir string, first uint64) error {
	for _, generation := range []uint64{first, first + 1} {
		name := oldJournal(dir, generation)
		content, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		each := func(_ int64, changes []byte) error { return c.readRecord(changes) }
		end, err := wal.ReadRecords(content, generation, each, func(from, to int64) error {
			return c.lose(false, to-from, "%s: damaged record at offset %d, %d bytes", filepath.Base(name), from, to-from)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if mark := binary.LittleEndian.AppendUint64(nil, generation); bytes.HasPrefix(content[end:], mark) {
			if err := c.lose(false, 0, "%s: the last record, at offset %d, is damaged or was cut off", filepath.Base(name), end); err != nil {
				return err
			}
		}
	}
	return nil
}

func oldJournal(dir string, generation uint64) string {
	return filepath.Join(dir, fmt.Sprintf("leases.%d.log", generation%2))
}

// addOrLose is add that leaves out a damaged value.
func (c *oldContents) addOrLose(id wal.TableID, key, value []byte) error {
	if err := c.add(id, key, value); err != nil {
		return c.lose(id == tableNodes, 0, "%v", err)
	}
	return nil
}

// add adds a value of a bucket. It converts leases and unknown machines, whose form has
// changed.
func (c *oldContents) add(id wal.TableID, key, value []byte) error {
	switch id {
	case tableLeases:
		if len(value) == 0 {
			return c.Apply(wal.Change{Table: id, Key: key})
		}
		var l pools.Lease
		if err := json.Unmarshal(value, &l); err != nil {
			return fmt.Errorf("lease %x: %w", key, err)
		}
		if addr, ok := netip.AddrFromSlice(key); !ok || addr != l.Address {
			return fmt.Errorf("lease %x: it says it is for %s", key, l.Address)
		}
		return c.Apply(putLease(tableLeases, &keptLease{Lease: l}))
	case tableUnknowns: // the key was a slot number; after a crash a machine could have two
		var u, other pools.Unknown
		if err := json.Unmarshal(value, &u); err != nil {
			return fmt.Errorf("unknown machine %x: %w", key, err)
		}
		if old := c.Contents[id][string(u.MAC[:])]; json.Unmarshal(old, &other) == nil && other.Last.After(u.Last) {
			return nil
		}
		key = u.MAC[:]
	}
	return c.Apply(wal.Change{Table: id, Key: key, Value: append([]byte{}, value...)})
}

var errOldRecord = errors.New("a change is cut off")

// readRecord reads a record of a journal. It has for each lease the length of the key (1
// byte), the length of the value plus one (4 bytes, little endian, 0 for a removal), the
// key and the value.
func (c *oldContents) readRecord(b []byte) error {
	for len(b) > 0 {
		if len(b) < 5 {
			return errOldRecord
		}
		key, value := int(b[0]), max(int(binary.LittleEndian.Uint32(b[1:])), 1)-1
		if b = b[5:]; len(b) < key+value {
			return errOldRecord
		}
		if err := c.addOrLose(tableLeases, b[:key], b[key:key+value]); err != nil {
			return err
		}
		b = b[key+value:]
	}
	return nil
}
