package readiness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover/web/api"
)

const (
	// diskInterval is the time between two checks of a directory.
	diskInterval = 3 * time.Second

	// diskHangs is the time after which a check that does not end is a problem. It is
	// much longer than a write to a healthy disk takes.
	diskHangs = 2 * time.Second
)

// Disks checks at intervals that the directories of the server can be used: that
// the one of the state stores data, and that the others answer. A full disk must be
// known before a machine needs it, and a disk that hangs must not make /readyz hang.
type Disks struct {
	log         *slog.Logger
	directories []*directory
}

// directory is a directory with the result of its last check.
type directory struct {
	name, path string
	check      func(path string) error
	brief      string // the problem for clients without the token

	mu    sync.Mutex
	began time.Time // of the check that runs; zero: none runs
	ended time.Time // of the last check
	err   error     // of the last check
	space Space     // at the last check that found it
}

// Space is the size of a file system, and how much of it drover can still use, in bytes.
type Space struct{ Size, Free uint64 }

// NewDisks returns the checks of the directories of the state, of images and of loaders.
// store has the state.
func NewDisks(log *slog.Logger, state, images, loaders string, store Condition) *Disks {
	stored := func(dir string) error {
		if err := store.Health(); err != nil {
			return err
		}
		return stores(dir)
	}
	return &Disks{log: log, directories: []*directory{
		{name: "state", path: state, check: stored, brief: "it does not store data"},
		{name: "images", path: images, check: answers, brief: "it does not answer"},
		{name: "loaders", path: loaders, check: answers, brief: "it does not answer"},
	}}
}

// Run checks the directories until ctx ends, and logs when one begins to fail, and when
// it works again.
func (m *Disks) Run(ctx context.Context) error {
	tick := time.NewTicker(diskInterval / 6)
	defer tick.Stop()
	failing := make(map[*directory]bool)
	for {
		for _, d := range m.directories {
			now := time.Now()
			d.begin(now)
			err := d.failure(now)
			if failed := err != nil; failed != failing[d] {
				failing[d] = failed
				if failed {
					m.log.Error("directory not usable", "what", d.name, "directory", d.path, "err", err)
				} else {
					m.log.Info("directory usable again", "what", d.name, "directory", d.path)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil // a check that hangs is left alone
		case <-tick.C:
		}
	}
}

// begin starts a check, unless one runs or the last one has just ended.
func (d *directory) begin(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.began.IsZero() || now.Sub(d.ended) < diskInterval && !d.ended.IsZero() {
		return
	}
	d.began = now
	go func() {
		err := d.check(d.path)
		space, known := spaceOf(d.path)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.began, d.ended, d.err = time.Time{}, time.Now(), err
		if known {
			d.space = space
		}
	}()
}

// failure returns the error of the last check, or an error if a check hangs.
func (d *directory) failure(now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if took := now.Sub(d.began); !d.began.IsZero() && took > diskHangs {
		return fmt.Errorf("%s: no answer for %s: the disk hangs", d.path, took.Round(time.Second))
	}
	return d.err
}

// problems returns the directories that do not work.
func (m *Disks) problems() (out []api.Problem) {
	for _, d := range m.directories {
		if err := d.failure(time.Now()); err != nil {
			out = append(out, api.Problem{Part: "disk of the " + d.name, Problem: err.Error(), Brief: d.brief})
		}
	}
	return out
}

// Works reports, by the name of a directory, whether it works.
func (m *Disks) Works() map[string]bool {
	works := make(map[string]bool, len(m.directories))
	for _, d := range m.directories {
		works[d.name] = d.failure(time.Now()) == nil
	}
	return works
}

// Space returns the space at each directory, by its name. It leaves out directories that
// are not there, or have not answered yet.
func (m *Disks) Space() map[string]Space {
	all := make(map[string]Space, len(m.directories))
	for _, d := range m.directories {
		d.mu.Lock()
		if d.space.Size > 0 {
			all[d.name] = d.space
		}
		d.mu.Unlock()
	}
	return all
}

// spaceOf asks the file system at a path, which can hang.
func spaceOf(path string) (s Space, ok bool) {
	var f unix.Statfs_t
	if unix.Statfs(path, &f) != nil || f.Bsize <= 0 {
		return Space{}, false
	}
	return Space{f.Blocks * uint64(f.Bsize), f.Bavail * uint64(f.Bsize)}, true
}

// testSize is the space that a check of the state needs, in bytes: the state grows by
// so much at a time.
const testSize = 1 << 20

// stores returns an error if a directory does not store a small file durably, or has no
// space for the next growth of the state.
func stores(dir string) error {
	path := filepath.Join(dir, ".write-test")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("%w: nodes of the API, leases and boots are not stored", err)
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, testSize)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINTR) {
		err = nil // the write shows whether there is space at all
	}
	if err == nil {
		_, err = f.WriteAt(make([]byte, 4<<10), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close(), os.Remove(path)); err != nil {
		return fmt.Errorf("%s: %w: nodes of the API, leases and boots are not stored; make room, or mend the disk", dir, err)
	}
	return nil
}

// answers returns an error if a directory cannot be read. One that does not exist is
// empty: missing images and loaders are reported by name.
func answers(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
