package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"go.etcd.io/bbolt"
)

// journalSize is how long a file of the journal is, in bytes: some 5 000
// leases. Folding so many into the state file takes tens of milliseconds of the
// processor, a few at a time.
const journalSize = 1 << 20

// journal makes leases durable at a tenth of what a transaction of the state
// file costs: one write to the end of a file that is as long as it will ever
// be, and one fdatasync, which then has no metadata to write.
//
// There are two files, leases.0.log and leases.1.log. Each generation of
// records fills one of them from its beginning; then the next takes the other,
// while the last value of each lease of the full one is folded into the state
// file, in several transactions, and with the last of them the number of the
// generation that is not folded yet. Who opens the store replays that one and the
// next: to fold twice does no harm. A record that is cut
// off, or left over from an earlier generation, ends its file.
//
// One goroutine uses it.
type journal struct {
	files [2]journalFile
	size  int64
	fold  func(ops []op) *write // into the state file; the write ends when that is durable

	generation uint64 // whose records are appended
	end        int64  // of its records
	pending    map[string]op
	broken     bool // a write failed: what the file holds is not known

	folding []op   // what is being folded; kept to try again
	folded  *write // how that went
}

// journalFile is what a journal needs of a file.
type journalFile interface {
	io.ReaderAt
	io.WriterAt
	Datasync() error
	io.Closer
}

// diskFile is a file of the journal on disk.
type diskFile struct {
	*os.File
	*datasyncer
}

// Datasync makes what was written durable, without the time of the change.
func (f diskFile) Datasync() error { return f.sync() }

// Close closes the file.
func (f diskFile) Close() error { return errors.Join(f.close(), f.File.Close()) }

// journalName is the name of a file of the journal.
func journalName(i int) string { return "leases." + strconv.Itoa(i) + ".log" }

// openJournalFile opens a file and makes it as long as it will be. Zeros are
// written, not left out: else each fdatasync would have blocks to allocate.
func openJournalFile(path string, size int64) (journalFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < size {
		if _, err = f.WriteAt(make([]byte, size-info.Size()), info.Size()); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return diskFile{f, newDatasyncer(int(f.Fd()))}, nil
}

// openJournal replays the journal of dir into db, and returns it empty.
func openJournal(dir string, size int64, db *bbolt.DB, log *slog.Logger) (*journal, error) {
	j := &journal{size: size, pending: map[string]op{}}
	for i := range j.files {
		f, err := openJournalFile(filepath.Join(dir, journalName(i)), size)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("journal: %w", err), j.close())
		}
		j.files[i] = f
	}
	if err := j.replay(db, log); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// replay folds what the last run left in the journal.
func (j *journal) replay(db *bbolt.DB, log *slog.Logger) error {
	if err := db.View(func(tx *bbolt.Tx) (err error) {
		j.generation, err = foldedUpTo(tx)
		return err
	}); err != nil {
		return fmt.Errorf("%s: %w", db.Path(), err)
	}
	var ops []op
	for range j.files {
		more, err := j.read()
		if err != nil {
			return fmt.Errorf("%s: %w", journalName(j.current()), err)
		}
		ops = append(ops, more...)
		j.generation++
	}
	if len(ops) > 0 {
		log.Info("leases of the last run taken from the journal", "writes", len(ops))
	}
	ops = append(ops, foldedUpToOp(j.generation))
	err := db.Update(func(tx *bbolt.Tx) error { return apply(tx, []*write{{ops: ops}}) })
	if err != nil {
		return fmt.Errorf("%s: %w", db.Path(), err)
	}
	return nil
}

// current is the index of the file that the generation is in.
func (j *journal) current() int { return int(j.generation % uint64(len(j.files))) }

// append makes writes durable, together.
func (j *journal) append(batch []*write) error {
	record := j.record(batch)
	if j.broken || j.end+int64(len(record)) > j.size {
		if err := j.rotate(); err != nil {
			return err
		}
		record = j.record(batch)
	}
	if int64(len(record)) > j.size { // straight into the state file
		j.remember(batch)
		return errors.Join(j.rotate(), j.settle())
	}
	f := j.files[j.current()]
	_, err := f.WriteAt(record, j.end)
	if err == nil {
		err = f.Datasync()
	}
	if err != nil {
		// Whether the record is there nobody can tell. Should it be, it is
		// replayed: a lease that nobody was told of.
		j.broken = true
		return fmt.Errorf("%s: %w", journalName(j.current()), err)
	}
	j.end += int64(len(record))
	j.remember(batch)
	return nil
}

// remember notes what is to be folded.
func (j *journal) remember(batch []*write) {
	for _, w := range batch {
		for _, o := range w.ops {
			j.pending[string(o.key)] = o
		}
	}
}

// rotate begins the next generation. It waits for the fold of the one before
// the current one, whose file it takes; only a disk that is slower than the
// load makes it wait long.
func (j *journal) rotate() error {
	if err := j.settle(); err != nil {
		return err
	}
	j.folding = make([]op, 0, len(j.pending)+1)
	for _, key := range slices.Sorted(maps.Keys(j.pending)) { // neighbours share a page
		j.folding = append(j.folding, j.pending[key])
	}
	j.generation++
	j.end, j.broken = 0, false
	j.folding = append(j.folding, foldedUpToOp(j.generation))
	j.folded = j.fold(j.folding)
	clear(j.pending)
	return nil
}

// settle waits until what is being folded is folded. When that failed, it is
// tried once more: nothing is appended that would overwrite it.
func (j *journal) settle() error {
	if j.folded.wait() == nil {
		return nil
	}
	j.folded = j.fold(j.folding)
	return j.folded.wait()
}

// finish folds all that is left.
func (j *journal) finish() error {
	err := j.settle()
	if err == nil && len(j.pending) > 0 {
		if err = j.rotate(); err == nil {
			err = j.settle()
		}
	}
	return errors.Join(err, j.close())
}

func (j *journal) close() error {
	var errs []error
	for _, f := range j.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// A record is a batch of writes: this header, then for each change of a lease
// the length of its key (1 byte), that of its value plus one (4 bytes, 0 for a
// removal), the key and the value. Numbers are little endian.
const (
	recordGeneration = 0  // 8 bytes
	recordLength     = 8  // 4 bytes, without the header
	recordSum        = 12 // 4 bytes: CRC-32C of the header so far, the place in the file, and the rest
	recordHeader     = 16
)

func (j *journal) record(batch []*write) []byte {
	b := make([]byte, recordHeader, recordHeader+256*len(batch))
	for _, w := range batch {
		for _, o := range w.ops {
			length := uint32(0)
			if o.value != nil {
				length = uint32(len(o.value)) + 1
			}
			b = append(b, byte(len(o.key)))
			b = binary.LittleEndian.AppendUint32(b, length)
			b = append(append(b, o.key...), o.value...)
		}
	}
	binary.LittleEndian.PutUint64(b[recordGeneration:], j.generation)
	binary.LittleEndian.PutUint32(b[recordLength:], uint32(len(b)-recordHeader))
	binary.LittleEndian.PutUint32(b[recordSum:], recordCRC(b, j.end))
	return b
}

// recordCRC is the checksum of a record at a place. With the place in it, a
// record of the same generation that some bytes of another are taken for is
// none.
func recordCRC(record []byte, at int64) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, record[:recordSum])
	sum = crc32.Update(sum, table, binary.LittleEndian.AppendUint64(nil, uint64(at)))
	return crc32.Update(sum, table, record[recordHeader:])
}

// read returns the changes that the records of the generation hold.
func (j *journal) read() (ops []op, err error) {
	b := make([]byte, j.size)
	if _, err := j.files[j.current()].ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for at := int64(0); at+recordHeader <= int64(len(b)); {
		r := b[at:]
		length := int64(binary.LittleEndian.Uint32(r[recordLength:]))
		if binary.LittleEndian.Uint64(r) != j.generation || length > int64(len(r))-recordHeader {
			break
		}
		r = r[:recordHeader+length]
		if recordCRC(r, at) != binary.LittleEndian.Uint32(r[recordSum:]) {
			break
		}
		if ops, err = readOps(ops, r[recordHeader:]); err != nil {
			return nil, fmt.Errorf("record at %d: %w", at, err)
		}
		at += int64(len(r))
	}
	return ops, nil
}

// readOps appends the changes of a record. Its checksum is right, so that only
// another version of drover, or a mistake in this one, gives an error.
func readOps(ops []op, b []byte) ([]op, error) {
	for len(b) > 0 {
		if len(b) < 5 {
			return nil, errors.New("a change is cut off")
		}
		key, value := int(b[0]), int64(binary.LittleEndian.Uint32(b[1:]))
		b = b[5:]
		if key == 0 || int64(len(b)) < int64(key)+max(value-1, 0) {
			return nil, errors.New("a change is cut off")
		}
		o := op{bucket: bucketLeases, key: b[:key:key]}
		b = b[key:]
		if value > 0 {
			o.value, b = b[:value-1:value-1], b[value-1:]
		}
		ops = append(ops, o)
	}
	return ops, nil
}

// foldedUpTo is the first generation that is not in the state file yet.
func foldedUpTo(tx *bbolt.Tx) (uint64, error) {
	v := tx.Bucket(bucketMeta).Get(keyJournal)
	if v == nil {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("journal generation %q is not a number", v)
	}
	return n, nil
}

func foldedUpToOp(generation uint64) op {
	return op{bucketMeta, keyJournal, strconv.AppendUint(nil, generation, 10)}
}
