package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/state/wal"
)

// FileName is the name of the file in the state directory that contains the format of
// the directory. The process that uses the directory holds a lock on it.
const FileName = "drover.db"

// format is the version of the layout of the state directory. Open refuses a newer one,
// so that an old drover does not damage it.
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

	// Patience is the time after which a write that the disk has not taken is an
	// error for those who wait for it. Default 10 s.
	Patience time.Duration

	// Keys are the names of other files in the directory that show that a server
	// ran with it. Beside such a file a missing state is an error.
	Keys []string
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
	Leases6   *Leases // of IPv6: a machine has one of each
	Boots     *boots.Table
	Unknowns  *Unknowns
	NextBoots *NextBoots
	Retired   *Retired
	Channels  *Channels
	FallBacks *FallBacks
	Audit     *Audit
	Configs   *Configs

	log    *slog.Logger
	engine *wal.Log
	stop   context.CancelFunc
	ended  chan struct{} // closed when the flush loop has ended

	mu     sync.Mutex
	lock   *os.File // nil once the store is closed
	failed string   // the last error of a flush
}

// Open opens the state in dir, and creates the directory if it does not exist. Only one
// process can have it open: another one gets an error after [Options.LockTimeout].
//
// Open leaves out damaged values, logs them, and counts them in [Store.Damage]. Only
// damage that may have lost nodes, and a missing state beside one of [Options.Keys], is
// an error; it names the remedy. A disk that is full, read-only or hangs is no error if
// the directory has a state: see [Store.Health].
func Open(dir string, o Options) (*Store, error) {
	o.complete()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	w := &wal.Log{Dir: dir, Size: o.LogSize, Logger: o.Log, Patience: o.Patience}
	s := &Store{
		Nodes:     &Nodes{newRows[pools.PoolNode](w, tableNodes)},
		Leases:    newLeases(w, tableLeases, o),
		Leases6:   newLeases(w, tableLeases6, o),
		Boots:     boots.NewTable(bootStorage{w}, o.Now),
		Unknowns:  &Unknowns{newRows[unknown](w, tableUnknowns), make(map[string]bool)},
		NextBoots: &NextBoots{o.Now, newRows[nextBoot](w, tableNext)},
		Retired:   &Retired{newRows[pools.RetiredNode](w, tableRetired)},
		Channels:  &Channels{rows: newRows[pools.ImageChannels](w, tableChannels)},
		FallBacks: &FallBacks{newRows[pools.ImageTrial](w, tableTrials)},
		Audit:     newAudit(w),
		Configs:   &Configs{newRows[keptConfig](w, tableConfigs)},
		log:       o.Log, engine: w, ended: make(chan struct{}),
	}
	w.Tables = map[wal.TableID]wal.Table{
		tableNodes:    {Vital: "nodes of the API", Load: s.Nodes.load, Each: s.Nodes.each},
		tableLeases:   {Load: s.Leases.load, Each: s.Leases.each},
		tableLeases6:  {Load: s.Leases6.load, Each: s.Leases6.each},
		tableBoots:    bootTable(s.Boots),
		tableUnknowns: {Load: s.Unknowns.load, Each: s.Unknowns.each},
		tableNext:     {Load: s.NextBoots.load, Each: s.NextBoots.each},
		tableRetired:  {Load: s.Retired.load, Each: s.Retired.each},
		tableChannels: {Load: s.Channels.load, Each: s.Channels.each},
		tableTrials:   {Load: s.FallBacks.load, Each: s.FallBacks.each},
		tableAudit:    {Load: s.Audit.load, Each: s.Audit.each},
		tableConfigs:  {Load: s.Configs.load, Each: s.Configs.each},
	}
	if err := s.open(dir, o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go s.flushLoop(ctx, o.FlushEvery)
	return s, nil
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

// flush calls flush, and logs an error unless it was the last one too.
func (s *Store) flush(what string, flush func() error) {
	err := flush()
	if errors.Is(err, wal.ErrClosed) {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	isNew := text != s.failed
	s.failed = text
	s.mu.Unlock()
	if err != nil && isNew {
		s.log.Error("state write failed, trying again", "what", what, "err", err)
	}
}

// Health returns the reason for which changes cannot be stored at present: the
// disk is full, read-only, broken or hangs. It returns nil if they can. The store works
// again as soon as the disk does.
func (s *Store) Health() error {
	if err := s.engine.Health(); err != nil {
		return fmt.Errorf("the state is not stored: %w", err)
	}
	return nil
}

// Damage returns the number of damaged parts that Open left out, which the log names.
func (s *Store) Damage() int { return s.engine.Damage().Parts }

// Close stores all changes and closes the state. Later writes return [wal.ErrClosed].
func (s *Store) Close() error {
	s.stop()
	<-s.ended
	err := s.engine.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	err = errors.Join(err, s.lock.Close())
	s.lock = nil
	return err
}
