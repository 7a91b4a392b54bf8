package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// tableLog is the log's own table. Its values are uvarints.
//
// The first record of a log has the end of the records in the previous log, and the
// number of its vital records, which change a table with Table.Vital. From the first
// vital record on, each record of a log has the number of vital records up to it. So
// Open can tell whether a damaged record was vital.
//
// In a snapshot a record with the key keyRest is behind all vital values.
const (
	tableLog       TableID = 0
	keyEnd                 = "end"
	keyVital               = "vital"
	keyVitalBefore         = "vital before"
	keyRest                = "rest"
)

func logChange(key string, n uint64) Change {
	return Change{tableLog, []byte(key), binary.AppendUvarint(nil, n)}
}

// Change sets a key of a table. A nil value deletes it.
type Change struct {
	Table      TableID
	Key, Value []byte
}

// Limits of a change, in bytes.
const (
	maxKey   = 32 << 10
	maxValue = 64 << 20
)

// check returns an error for a change that is too large for a record, or has no key.
func (c Change) check() error {
	switch {
	case len(c.Key) == 0 || len(c.Key) > maxKey:
		return fmt.Errorf("a key of %d bytes (want 1 to %d)", len(c.Key), maxKey)
	case len(c.Value) > maxValue:
		return fmt.Errorf("a value of %d bytes (want at most %d)", len(c.Value), maxValue)
	}
	return nil
}

// A record is a header and any number of changes, which are valid together or not at
// all. A change has the number of its table, the length of its key, the length of its
// value plus one (0 for a deletion), the key and the value. Numbers in the header are
// little endian, lengths are uvarints.
const (
	recordGeneration = 0  // 8 bytes
	recordLength     = 8  // 4 bytes: without the header
	recordSum        = 12 // 4 bytes: CRC-32C of the bytes before, the position in the file, and the changes
	recordHeader     = 16
)

// newRecord returns a record without changes; seal completes it.
func newRecord(buffer []byte) []byte {
	return append(buffer[:0], make([]byte, recordHeader)...)
}

func appendChange(record []byte, c Change) []byte {
	record = append(record, byte(c.Table))
	record = binary.AppendUvarint(record, uint64(len(c.Key)))
	if c.Value == nil {
		record = binary.AppendUvarint(record, 0)
	} else {
		record = binary.AppendUvarint(record, uint64(len(c.Value))+1)
	}
	return append(append(record, c.Key...), c.Value...)
}

// seal fills in the header of a record for a position in a file.
func seal(record []byte, generation uint64, at int64) {
	binary.LittleEndian.PutUint64(record[recordGeneration:], generation)
	binary.LittleEndian.PutUint32(record[recordLength:], uint32(len(record)-recordHeader))
	binary.LittleEndian.PutUint32(record[recordSum:], recordCRC(record, at))
}

// recordCRC returns the checksum of a record at a position. It includes the position, so
// that a copy of a record inside of another one is not valid.
func recordCRC(record []byte, at int64) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, record[:recordSum])
	sum = crc32.Update(sum, table, binary.LittleEndian.AppendUint64(nil, uint64(at)))
	return crc32.Update(sum, table, record[recordHeader:])
}

// recordAt returns the record of that generation at a position in the content of a file,
// or nil.
func recordAt(content []byte, generation uint64, at int64) []byte {
	r := content[at:]
	if len(r) < recordHeader || binary.LittleEndian.Uint64(r) != generation {
		return nil
	}
	length := int64(binary.LittleEndian.Uint32(r[recordLength:]))
	if length > int64(len(r))-recordHeader {
		return nil
	}
	r = r[:recordHeader+length]
	if recordCRC(r, at) != binary.LittleEndian.Uint32(r[recordSum:]) {
		return nil
	}
	return r
}

// ReadRecords calls each with the changes of each record in the content of a file, in
// order, and returns the end of the last one. For bytes between records that are not a
// valid record it calls gap. The bytes behind the end are not a valid record, or zeros. A
// record is valid at its own position in the log of its own generation only, so none
// can be read twice or in another order.
func ReadRecords(content []byte, generation uint64, each func(at int64, changes []byte) error, gap func(from, to int64) error) (end int64, err error) {
	for {
		at, r := nextRecord(content, generation, end)
		if r == nil {
			return end, nil
		}
		if at > end {
			if err := gap(end, at); err != nil {
				return end, err
			}
		}
		if err := each(at, r[recordHeader:]); err != nil {
			return at, fmt.Errorf("record at offset %d: %w", at, err)
		}
		end = at + int64(len(r))
	}
}

// nextRecord returns the first record at or behind a position, or nil.
func nextRecord(content []byte, generation uint64, at int64) (int64, []byte) {
	mark := binary.LittleEndian.AppendUint64(nil, generation)
	for ; ; at++ {
		if r := recordAt(content, generation, at); r != nil {
			return at, r
		}
		i := bytes.Index(content[min(at+1, int64(len(content))):], mark)
		if i < 0 {
			return at, nil
		}
		at += int64(i)
	}
}

// readChanges calls each with the changes of a record. Since the checksum of the record is
// right, an error means that another version of drover wrote it, or a bug.
func readChanges(b []byte, each func(Change) error) error {
	for len(b) > 0 {
		c := Change{Table: TableID(b[0])}
		key, n := binary.Uvarint(b[1:])
		if n <= 0 {
			return errCut
		}
		b = b[1+n:]
		value, n := binary.Uvarint(b)
		if n <= 0 || key == 0 || key > maxKey || value > maxValue+1 {
			return errCut
		}
		b = b[n:]
		if uint64(len(b)) < key+max(value, 1)-1 {
			return errCut
		}
		c.Key, b = b[:key:key], b[key:]
		if value > 0 {
			c.Value, b = b[:value-1:value-1], b[value-1:]
		}
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

var errCut = errors.New("a change is cut off")
