package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/state/wal"
)

// FileName is the name of the file in the state directory that contains the format of
// the directory. The process that uses the directory holds a lock on it.
const FileName = "drover.db"

// format is the version of the layout of the state directory. Open refuses a newer one,
// so that an old drover does not damage it. Formats 1 and 2 were a bbolt file; see
// convert.go.
const format = 3

// formatFile is the content of [FileName]. It begins with formatText and the version.
const (
	formatText = "drover state, format "
	formatFile = formatText + "3\nThe data is in drover.*.snap and drover.*.log.\n"
)

// logSize is the default of [Options.LogSize], in bytes: some 60 000 leases.
const logSize = 4 << 20

// Options are the options of [Open]. The zero value is that of a server.
type Options struct {
	// LockTimeout limits the wait for another process that has locked the directory,
	// for example the drover that this one replaces. Default 2 s.
	LockTimeout time.Duration

	// FlushEvery is the interval at which steps of boots are stored that need not be
	// durable at once. Unknown machines are stored at ten times that interval.
	// Default 1 s.
	FlushEvery time.Duration

	// Now is the clock that dates the steps of boots. Default [time.Now].
	Now func() time.Time

	// Log gets errors that no caller can get: failed asynchronous writes, and a slow
	// disk. Default: none.
	Log *slog.Logger

	// LogSize is the least size of a log, in bytes, at which the next generation
	// begins. Default 4 MiB.
	LogSize int64
}

// complete sets the defaults.
func (o *Options) complete() {
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
	if o.LogSize <= 0 {
		o.LogSize = logSize
	}
}

// Store is the open state directory. Its tables are safe for concurrent use.
type Store struct {
	Nodes     *Nodes
	Leases    *Leases
	Boots     *boots.Table
	Unknowns  *Unknowns
	NextBoots *NextBoots
	Audit     *Audit

	log    *slog.Logger
	lock   *os.File
	engine *wal.Log
	stop   context.CancelFunc
	ended  chan struct{} // closed when the flush loop has ended
}

// Open opens the state in dir, and creates the directory if it does not exist. Only one
// process can have it open: another one gets an error after [Options.LockTimeout].
func Open(dir string, o Options) (*Store, error) {
	o.complete()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	w := &wal.Log{Dir: dir, Size: o.LogSize, Logger: o.Log}
	s := &Store{
		Nodes:     &Nodes{newRows[pools.PoolNode](w, tableNodes)},
		Leases:    newLeases(w),
		Boots:     boots.NewTable(bootStorage{w}, o.Now),
		Unknowns:  &Unknowns{newRows[unknown](w, tableUnknowns), make(map[string]bool)},
		NextBoots: &NextBoots{o.Now, newRows[nextBoot](w, tableNext)},
		Audit:     &Audit{rows: newRows[pools.AuditEntry](w, tableAudit)},
		log:       o.Log, engine: w, ended: make(chan struct{}),
	}
	w.Tables = map[wal.TableID]wal.Table{
		tableNodes:    {Load: s.Nodes.load, Each: s.Nodes.each},
		tableLeases:   {Load: s.Leases.load, Each: s.Leases.each},
		tableBoots:    bootTable(s.Boots),
		tableUnknowns: {Load: s.Unknowns.load, Each: s.Unknowns.each},
		tableNext:     {Load: s.NextBoots.load, Each: s.NextBoots.each},
		tableAudit:    {Load: s.Audit.load, Each: s.Audit.each},
	}
	if err := s.open(filepath.Join(dir, FileName), o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go s.flushLoop(ctx, o.FlushEvery)
	return s, nil
}

// open locks the directory, converts an earlier format, and fills the tables.
func (s *Store) open(path string, o Options) error {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	version, ok := strings.CutPrefix(string(content), formatText)
	if !ok && len(content) > 0 {
		s.lock, err = s.convert(path, o)
		return err
	}
	if s.lock, err = lock(path, o.LockTimeout); err != nil {
		return err
	}
	if ok {
		version, _, _ = strings.Cut(version, "\n")
		err = checkFormat(version, format)
	} else {
		_, err = s.lock.WriteString(formatFile)
		err = errors.Join(err, s.lock.Sync())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), s.lock.Close())
	}
	if err := s.engine.Open(); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	return nil
}

// checkFormat returns an error for a version that is newer than known, or not a number.
func checkFormat(version string, known int) error {
	n, err := strconv.Atoi(version)
	if err != nil || n < 1 {
		return fmt.Errorf("format version %q is not a number", version)
	}
	if n > known {
		return fmt.Errorf("written by a newer drover (format %d, this one knows %d): upgrade, or restore the backup made before the upgrade", n, known)
	}
	return nil
}

// unknownTicks is the number of flushes of the boots for each flush of the unknown
// machines, which matter less.
const unknownTicks = 10

// flushLoop stores changes that are only in RAM, at intervals and when ctx ends.
func (s *Store) flushLoop(ctx context.Context, every time.Duration) {
	defer close(s.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			n = 0
		case <-tick.C:
		}
		s.flush("boot timelines", s.Boots.Flush)
		if n%unknownTicks == 0 {
			s.flush("unknown machines", s.Unknowns.Flush)
		}
		if n == 0 {
			return
		}
	}
}

func (s *Store) flush(what string, flush func() error) {
	if err := flush(); err != nil && !errors.Is(err, wal.ErrClosed) {
		s.log.Error("not stored", "what", what, "err", err)
	}
}

// Close stores all changes and closes the state. Later writes return [wal.ErrClosed].
func (s *Store) Close() error {
	s.stop()
	<-s.ended
	if s.lock == nil {
		return nil
	}
	err := errors.Join(s.engine.Close(), s.lock.Close())
	s.lock = nil
	return err
}
