package state

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
	bberrors "go.etcd.io/bbolt/errors"

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
// the earlier state in force. It returns the new, locked file.
func (s *Store) convert(path string, o Options) (*os.File, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: o.LockTimeout})
	switch {
	case errors.Is(err, bberrors.ErrTimeout):
		return nil, fmt.Errorf("%s %s", path, isLocked)
	case errors.Is(err, bberrors.ErrInvalid), errors.Is(err, bberrors.ErrChecksum), errors.Is(err, bberrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%s is not a state file of drover, or is damaged: %w (restore a backup, or move it away to start anew)", path, err)
	case err != nil:
		return nil, fmt.Errorf("state file: %w", err)
	}
	c := oldContents{wal.Contents{}}
	err = db.View(func(tx *bbolt.Tx) error { return c.read(tx, filepath.Dir(path)) })
	if content, _ := os.ReadFile(path); strings.HasPrefix(string(content), formatText) {
		err = fmt.Errorf("another drover is converting it")
	}
	if err == nil {
		err = s.engine.Import(c.Contents)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	f, err := replaceOld(path)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), s.engine.Close())
	}
	s.log.Info("state of an earlier version converted", "file", path, "kept", path+".old")
	return f, nil
}

// replaceOld writes the state file of the current format, and renames the files of the
// earlier one to *.old.
func replaceOld(path string) (*os.File, error) {
	err := os.Remove(path + ".old")
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Link(path, path+".old")
	}
	if err == nil {
		err = atomicfile.Write(path, []byte(formatFile), 0o600)
	}
	for generation := range uint64(2) {
		name := oldJournal(filepath.Dir(path), generation)
		if err == nil {
			err = os.Rename(name, name+".old")
		}
		if errors.Is(err, fs.ErrNotExist) { // format 1 had none
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return lock(path, 0)
}

// oldContents is the contents of a state directory of an earlier version.
type oldContents struct{ wal.Contents }

// read reads all buckets and the journals.
func (c oldContents) read(tx *bbolt.Tx, dir string) error {
	journal := uint64(0)
	if meta := tx.Bucket([]byte("meta")); meta != nil {
		if err := checkFormat(string(meta.Get([]byte("format"))), formatBolt); err != nil {
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
			if err := b.ForEach(func(key, value []byte) error { return c.add(id, key, value) }); err != nil {
				return err
			}
		}
	}
	for _, generation := range []uint64{journal, journal + 1} {
		content, err := os.ReadFile(oldJournal(dir, generation))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := wal.ReadRecords(content, generation, c.readRecord); err != nil {
			return fmt.Errorf("%s: %w: restore the state directory from a backup, or move this file away to go on without its leases", oldJournal(dir, generation), err)
		}
	}
	return nil
}

func oldJournal(dir string, generation uint64) string {
	return filepath.Join(dir, fmt.Sprintf("leases.%d.log", generation%2))
}

// add adds a value of a bucket. It converts leases and unknown machines, whose form has
// changed.
func (c oldContents) add(id wal.TableID, key, value []byte) error {
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
		return c.Apply(putLease(&l))
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
	return c.Apply(wal.Change{Table: id, Key: key, Value: append([]byte{}, value...)}) // a copy: bbolt's memory is valid only during the transaction
}

var errOldRecord = errors.New("a change is cut off")

// readRecord reads a record of a journal. It has for each lease the length of the key (1
// byte), the length of the value plus one (4 bytes, little endian, 0 for a removal), the
// key and the value.
func (c oldContents) readRecord(b []byte) error {
	for len(b) > 0 {
		if len(b) < 5 {
			return errOldRecord
		}
		key, value := int(b[0]), max(int(binary.LittleEndian.Uint32(b[1:])), 1)-1
		if b = b[5:]; len(b) < key+value {
			return errOldRecord
		}
		if err := c.add(tableLeases, b[:key], b[key:key+value]); err != nil {
			return err
		}
		b = b[key+value:]
	}
	return nil
}
