package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"drover/e2e/bench/kit"
	"drover/e2e/buildcache"
	"drover/e2e/lab/site"
)

// bench has the data of a run.
type bench struct {
	options
	dir      string // configs, logs, consoles and built files
	lock     *os.File
	drover   string // the program
	from     string // the origin of the program
	programs *programs
	site     *site.Built // image, kernel and initrd of a machine; made when a part needs it
	log      io.Writer
}

// openBench downloads the peers and builds drover.
func openBench(ctx context.Context, o options, log io.Writer) (_ *bench, err error) {
	cache, err := buildcache.CacheDir()
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, log: log, dir: filepath.Join(cache, "bench-boot-run")}
	if err := b.clear(); err != nil {
		return nil, err
	}
	if b.programs, err = fetchPrograms(ctx, log); err != nil {
		return nil, err
	}
	b.drover, b.from, err = kit.FindDrover(ctx, b.dir, o.drover)
	return b, err
}

// clear empties the directory, unless another run uses it.
func (b *bench) clear() (err error) {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	if b.lock, err = os.Open(b.dir); err != nil {
		return err
	}
	if err := syscall.Flock(int(b.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("%s: another run is at work there: %w", b.dir, err), b.lock.Close())
	}
	entries, err := os.ReadDir(b.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(b.dir, e.Name())))
	}
	return err
}

// close removes all files, unless -keep is set.
func (b *bench) close() error {
	defer b.lock.Close()
	if b.keep {
		b.say("configs, logs and consoles are in %s", b.dir)
		return nil
	}
	return os.RemoveAll(b.dir)
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }

// The parts of the rack are the node image, its kernel and drover's initrd.
func (b *bench) rack(ctx context.Context) (*site.Built, error) {
	if b.site != nil {
		return b.site, nil
	}
	if err := site.Check(ctx); err != nil {
		return nil, err
	}
	var err error
	b.site, err = site.Build(ctx, b.log)
	return b.site, err
}
