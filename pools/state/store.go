package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"drover/pools/boots"
)

// FileName is the name of the file in the state directory that says which format
// the directory has. A process that uses the directory holds a lock on it.
const FileName = "drover.db"

// format is the version of the layout of the state directory. A newer one is
// refused, so that an old drover does not damage what it does not understand.
// Formats 1 and 2 were a bbolt file, see convert.go.
const format = 3

// formatText begins [FileName]; the version follows.
const formatText = "drover state, format "

// logSize is how long a log is at least, in bytes: some 60 000 leases.
const logSize = 4 << 20

// Options tune [Open]. The zero value is what a server uses.
type Options struct {
	// LockTimeout is how long to wait for another process to let go of the
	// directory, for example the drover that this one replaces. Default 2 s.
	LockTimeout time.Duration

	// FlushEvery is how long the steps of boots that need not be durable at once may
	// wait in RAM, and a tenth of how long the sight of an unknown machine may.
	// Default 1 s.
	FlushEvery time.Duration

	// Now is the clock that dates the steps of boots. Default [time.Now].
	Now func() time.Time

	// Log gets what no caller can be told: asynchronous writes that failed, and a
	// slow disk. Default: none.
	Log *slog.Logger

	// LogSize is how long a log is at least, in bytes, before the next generation
	// begins. Default 4 MiB.
	LogSize int64
}

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
	engine *wal
	stop   context.CancelFunc
	ended  chan struct{} // closed when the flush loop has ended
}

// Open opens the state in dir, which it makes when it is missing. Only one process
// can have it open: another one gets an error after [Options.LockTimeout].
func Open(dir string, o Options) (*Store, error) {
	o.complete()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	lock, err := openDirectory(dir, o)
	if err != nil {
		return nil, err
	}
	w := &wal{dir: dir, log: o.Log, limit: o.LogSize, create: createFile}
	s := &Store{log: o.Log, lock: lock, engine: w, ended: make(chan struct{})}
	s.Nodes = newNodes(w)
	s.Leases = newLeases(w)
	s.Boots = boots.NewTable(bootStorage{w}, o.Now)
	s.Unknowns = newUnknowns(w)
	s.NextBoots = newNextBoots(w, o.Now)
	s.Audit = &Audit{engine: w}
	w.tables = map[tableID]table{
		tableNodes: s.Nodes, tableLeases: s.Leases, tableBoots: bootTable{s.Boots},
		tableUnknowns: s.Unknowns, tableNext: s.NextBoots, tableAudit: s.Audit,
	}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go s.flushLoop(ctx, o.FlushEvery)
	return s, nil
}

// open fills the tables with what is on disk and begins a new generation.
func (w *wal) open() error {
	c, last, err := replay(w.dir)
	if err != nil {
		return err
	}
	if err := c.loadInto(w.tables); err != nil {
		return fmt.Errorf("%s: %w", w.dir, err)
	}
	current, err := w.createSegment(last.generation+1, w.limit)
	if err != nil {
		return err
	}
	current.before = last.end
	w.start(current)
	if err := w.snapshot(current.generation); err != nil {
		return errors.Join(err, w.close())
	}
	return nil
}

// openDirectory locks a state directory and brings it to this format.
func openDirectory(dir string, o Options) (*os.File, error) {
	path := filepath.Join(dir, FileName)
	for {
		f, err := lock(path, o.LockTimeout)
		if err != nil {
			return nil, fmt.Errorf("state directory: %w", err)
		}
		old, err := prepare(f)
		if err == nil && !old {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := convert(dir, o); err != nil {
			return nil, err
		}
	}
}

// prepare writes the format into a new file and refuses a newer one. It reports
// whether the file is of another kind, which only an earlier drover knows.
func prepare(f *os.File) (old bool, err error) {
	head := make([]byte, 64)
	n, err := f.ReadAt(head, 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return false, err
	case n == 0:
		_, err = fmt.Fprintf(f, "%s%d\nThe data is in drover.*.snap and drover.*.log.\n", formatText, format)
		return false, errors.Join(err, f.Sync())
	}
	version, ok := bytes.CutPrefix(head[:n], []byte(formatText))
	if !ok {
		return true, nil
	}
	version, _, _ = bytes.Cut(version, []byte("\n"))
	return false, checkFormat(version, format)
}

// checkFormat refuses a version that is newer than the one that is known.
func checkFormat(version []byte, known int) error {
	n, err := strconv.Atoi(string(version))
	if err != nil || n < 1 {
		return fmt.Errorf("format version %q is not a number", version)
	}
	if n > known {
		return fmt.Errorf("written by a newer drover (format %d, this one knows %d): upgrade, or restore the backup made before the upgrade", n, known)
	}
	return nil
}

// unknownTicks is how many flushes of the boots go by before the unknown machines
// are flushed: they matter less.
const unknownTicks = 10

// flushLoop stores what waits in RAM, and a last time when ctx ends.
func (s *Store) flushLoop(ctx context.Context, every time.Duration) {
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
	if err := flush(); err != nil && !errors.Is(err, ErrClosed) {
		s.log.Error("not stored", "what", what, "err", err)
	}
}

// Close stores what waits and closes the state. Writes after it get [ErrClosed].
func (s *Store) Close() error {
	s.stop()
	<-s.ended
	if s.lock == nil {
		return nil
	}
	err := errors.Join(s.engine.close(), s.lock.Close())
	s.lock = nil
	return err
}
