package state

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/bbolt"
	bberrors "go.etcd.io/bbolt/errors"

	"drover/pools"
)

// formatBolt is the last format of the state file of earlier versions: a bbolt file
// with a bucket for each table, and beside it two journals of leases. Generation N of
// the records is in leases.(N mod 2).log; the bucket meta has the first one that is
// not in the file yet, under "journal".
const formatBolt = 2

// oldBuckets are the buckets of formatBolt.
var oldBuckets = map[string]tableID{
	"nodes": tableNodes, "leases": tableLeases, "boots": tableBoots,
	"unknown": tableUnknowns, "next": tableNext, "audit": tableAudit,
}

// convert replaces the state of an earlier version, which it keeps as *.old. A crash
// before the last step leaves it in force.
func convert(dir string, o Options) error {
	path := filepath.Join(dir, FileName)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: o.LockTimeout})
	switch {
	case errors.Is(err, bberrors.ErrTimeout):
		return fmt.Errorf("%s is locked: another drover is running with this state directory", path)
	case errors.Is(err, bberrors.ErrInvalid), errors.Is(err, bberrors.ErrChecksum), errors.Is(err, bberrors.ErrVersionMismatch):
		return fmt.Errorf("%s is not a state file of drover, or is damaged: %w (restore a backup, or move it away to start anew)", path, err)
	case err != nil:
		return fmt.Errorf("state file: %w", err)
	}
	c := contents{}
	err = db.View(func(tx *bbolt.Tx) error { return c.readBolt(tx, dir) })
	if err == nil {
		err = c.replaceBolt(dir, o.Log)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	o.Log.Info("state of an earlier version converted", "file", path, "kept", path+".old")
	return nil
}

// readBolt reads all buckets and the journals.
func (c contents) readBolt(tx *bbolt.Tx, dir string) error {
	journal := uint64(0)
	if meta := tx.Bucket([]byte("meta")); meta != nil {
		if err := checkFormat(meta.Get([]byte("format")), formatBolt); err != nil {
			return err
		}
		if v := meta.Get([]byte("journal")); v != nil {
			var err error
			if journal, err = strconv.ParseUint(string(v), 10, 64); err != nil {
				return fmt.Errorf("journal generation %q is not a number", v)
			}
		}
	}
	for name, id := range oldBuckets {
		if b := tx.Bucket([]byte(name)); b != nil {
			if err := b.ForEach(func(key, value []byte) error { return c.addOld(id, key, value) }); err != nil {
				return err
			}
		}
	}
	for _, generation := range []uint64{journal, journal + 1} {
		content, err := os.ReadFile(oldJournal(dir, generation))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := readRecords(content, generation, c.readOldRecord); err != nil {
			return fmt.Errorf("%s: %w: restore the state directory from a backup, or move this file away to go on without its leases", oldJournal(dir, generation), err)
		}
	}
	return nil
}

func oldJournal(dir string, generation uint64) string {
	return filepath.Join(dir, fmt.Sprintf("leases.%d.log", generation%2))
}

// addOld adds a value of a bucket, which has another form for two of them.
func (c contents) addOld(id tableID, key, value []byte) error {
	switch id {
	case tableLeases:
		if len(value) == 0 {
			return c.apply(change{table: id, key: key})
		}
		var l pools.Lease
		if err := json.Unmarshal(value, &l); err != nil {
			return fmt.Errorf("lease %x: %w", key, err)
		}
		if addr, ok := netip.AddrFromSlice(key); !ok || addr != l.Address {
			return fmt.Errorf("lease %x: it says it is for %s", key, l.Address)
		}
		return c.apply(putLease(&l))
	case tableUnknowns: // the key was a slot; after a crash a machine could be in two
		var u, other pools.Unknown
		if err := json.Unmarshal(value, &u); err != nil {
			return fmt.Errorf("unknown machine %x: %w", key, err)
		}
		if old := c[id][string(u.MAC[:])]; json.Unmarshal(old, &other) == nil && other.Last.After(u.Last) {
			return nil
		}
		key = u.MAC[:]
	}
	return c.apply(change{id, key, append([]byte{}, value...)}) // bbolt's memory is gone after the transaction
}

// readOldRecord reads a record of a journal: for each lease the length of the key
// (1 byte) and that of the value plus one (4 bytes, 0 for a removal), the key and the
// value.
func (c contents) readOldRecord(b []byte) error {
	for len(b) > 0 {
		if len(b) < 5 {
			return errCut
		}
		key, value := int(b[0]), max(int(binary.LittleEndian.Uint32(b[1:])), 1)-1
		if b = b[5:]; len(b) < key+value {
			return errCut
		}
		if err := c.addOld(tableLeases, b[:key], b[key:key+value]); err != nil {
			return err
		}
		b = b[key+value:]
	}
	return nil
}

// replaceBolt writes the contents as the first generation, then puts the new format
// in the place of the state file.
func (c contents) replaceBolt(dir string, log *slog.Logger) error {
	w := &wal{dir: dir, log: log, limit: logSize, create: createFile, tables: map[tableID]table{}}
	for id := range c {
		w.tables[id] = values(c[id])
	}
	path := filepath.Join(dir, FileName)
	if err := cmp.Or(w.removeBefore(^uint64(0)), os.RemoveAll(path+".old"), os.Link(path, path+".old")); err != nil {
		return err
	}
	first, err := w.createSegment(1, w.limit)
	if err != nil {
		return err
	}
	w.start(first)
	_, err = w.writeSnapshot(1)
	if err := errors.Join(err, w.close()); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = prepare(f)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	for generation := range uint64(2) {
		if name := oldJournal(dir, generation); err == nil && exists(name) {
			err = os.Rename(name, name+".old")
		}
	}
	return cmp.Or(err, syncDir(dir))
}

// values is the table of contents that nobody changes.
type values map[string][]byte

func (values) load([]byte, []byte) error { return nil }

func (v values) each(put func(key, value []byte), _ func() error) error {
	for key, value := range v {
		put([]byte(key), value)
	}
	return nil
}
