package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bberrors "go.etcd.io/bbolt/errors"

	"drover/pools/boots"
)

// FileName is the name of the state file in its directory.
const FileName = "drover.db"

// format is the version of the layout of the state file. A newer one is
// refused, so that an old drover does not damage what it does not understand.
// 2 has the journal of leases beside it.
const format = 2

// The buckets of the file, and the keys of the first.
var (
	bucketMeta    = []byte("meta")
	bucketNodes   = []byte("nodes")   // name: JSON of a pools.PoolNode
	bucketLeases  = []byte("leases")  // address, 4 or 16 bytes: JSON of a pools.Lease
	bucketBoots   = []byte("boots")   // record ID: the value of a boots.Change
	bucketUnknown = []byte("unknown") // slot, 2 bytes: JSON of a pools.Unknown
	bucketNext    = []byte("next")    // node name: JSON of a nextBoot
	bucketAudit   = []byte("audit")   // number, 8 bytes: JSON of a pools.AuditEntry
	keyFormat     = []byte("format")  // decimal version
	keyJournal    = []byte("journal") // the first generation of the journal that is not in this file, decimal
)

// ErrClosed refuses a write after [Store.Close].
var ErrClosed = errors.New("state is closed")

// Options tune [Open]. The zero value is what a server uses.
type Options struct {
	// LockTimeout is how long to wait for another process to let go of the
	// file, for example the drover that this one replaces. Default 2 s.
	LockTimeout time.Duration

	// FlushEvery is how long the timeline steps that need not be durable at
	// once may wait in RAM, and a tenth of how long the sight of an unknown
	// machine may. Default 1 s.
	FlushEvery time.Duration

	// Now is the clock that dates the steps of boots. Default [time.Now].
	Now func() time.Time

	// Log gets what no caller can be told: write-behind that failed. Default:
	// none.
	Log *slog.Logger

	// JournalSize is how long each of the two files of the lease journal is,
	// in bytes. Default 1 MiB.
	JournalSize int64
}

// Store is the open state file. Its parts are safe for concurrent use.
type Store struct {
	Nodes     *Nodes
	Leases    *Leases
	Boots     *boots.Table
	Unknowns  *Unknowns
	NextBoots *NextBoots
	Audit     *Audit

	db  *bbolt.DB
	log *slog.Logger

	journal *journal
	leases  *line // commits to the journal
	table   *line // commits to db

	mu     sync.RWMutex // held to write for closing, to read for queueing
	closed bool
	stop   context.CancelFunc
	ended  chan struct{} // closed when the write-behind loop has ended
}

// Open opens the state in dir, which it makes when it is not there. Only one
// process can have it open: another one gets an error after
// [Options.LockTimeout].
func Open(dir string, o Options) (*Store, error) {
	if o.LockTimeout <= 0 {
		o.LockTimeout = 2 * time.Second
	}
	if o.FlushEvery <= 0 {
		o.FlushEvery = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.JournalSize <= 0 {
		o.JournalSize = journalSize
	}
	db, err := openDB(dir, o.LockTimeout)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(dir, o.JournalSize, db, o.Log)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &Store{db: db, journal: j, log: o.Log, ended: make(chan struct{})}
	s.table, s.leases = s.newLine(FileName, pace, s.transact), s.newLine("leases.*.log", journalPace, j.append)
	j.fold = s.fold
	s.Nodes = &Nodes{store: s}
	s.Leases = newLeases(s)
	s.Boots = boots.NewTable(bootStorage{s}, o.Now)
	s.Unknowns = newUnknowns(s)
	s.NextBoots = newNextBoots(s, o.Now)
	s.Audit = &Audit{store: s}
	if err := db.View(s.load); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", db.Path(), err), j.close(), db.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go s.table.run()
	go s.leases.run()
	go s.writeBehind(ctx, o.FlushEvery)
	return s, nil
}

func openDB(dir string, timeout time.Duration) (*bbolt.DB, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	path := filepath.Join(dir, FileName)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:      timeout,
		FreelistType: bbolt.FreelistMapType,
		NoStatistics: true,
	})
	switch {
	case errors.Is(err, bberrors.ErrTimeout):
		return nil, fmt.Errorf("%s is locked: another drover is running with this state directory", path)
	case errors.Is(err, bberrors.ErrInvalid), errors.Is(err, bberrors.ErrChecksum), errors.Is(err, bberrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%s is not a state file of drover, or is damaged: %w (restore a backup, or move it away to start anew)", path, err)
	case err != nil:
		return nil, fmt.Errorf("state file: %w", err)
	}
	if err := db.Update(prepare); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return db, nil
}

// prepare makes the buckets of a new file and refuses a file of a newer
// version before anything is written to it.
func prepare(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucketIfNotExists(bucketMeta)
	if err != nil {
		return err
	}
	if v := meta.Get(keyFormat); v != nil {
		n, err := strconv.Atoi(string(v))
		if err != nil || n < 1 {
			return fmt.Errorf("format version %q is not a number", v)
		}
		if n > format {
			return fmt.Errorf("written by a newer drover (format %d, this one knows %d): upgrade, or restore the backup made before the upgrade", n, format)
		}
	}
	for _, name := range [][]byte{bucketNodes, bucketLeases, bucketBoots, bucketUnknown, bucketNext, bucketAudit} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return meta.Put(keyFormat, strconv.AppendInt(nil, format, 10))
}

func (s *Store) load(tx *bbolt.Tx) error {
	if err := s.Leases.load(tx.Bucket(bucketLeases)); err != nil {
		return err
	}
	if err := loadBoots(s.Boots, tx.Bucket(bucketBoots)); err != nil {
		return err
	}
	if err := s.NextBoots.load(tx.Bucket(bucketNext)); err != nil {
		return err
	}
	if err := s.Unknowns.load(tx.Bucket(bucketUnknown)); err != nil {
		return err
	}
	return s.Audit.load(tx.Bucket(bucketAudit))
}

// unknownTicks is how many flushes of the boots go by before the unknown
// machines are flushed: they matter less.
const unknownTicks = 10

// writeBehind stores what waits in RAM, and a last time when ctx ends.
func (s *Store) writeBehind(ctx context.Context, every time.Duration) {
	defer close(s.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			s.flush("boot timelines", s.Boots.Flush)
			s.flush("unknown machines", s.Unknowns.Flush)
			return
		case <-tick.C:
			s.flush("boot timelines", s.Boots.Flush)
			if n%unknownTicks == 0 {
				s.flush("unknown machines", s.Unknowns.Flush)
			}
		}
	}
}

func (s *Store) flush(what string, flush func() error) {
	if err := flush(); err != nil {
		s.log.Error("not stored", "what", what, "err", err)
	}
}

// Close stores what waits and closes the file. Writes after it get
// [ErrClosed].
func (s *Store) Close() error {
	s.stop()
	<-s.ended
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.leases.end()
	err := s.journal.finish() // which writes to the table once more
	s.table.end()
	return errors.Join(err, s.db.Close())
}
