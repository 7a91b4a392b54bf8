package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"drover/e2e/lab/site"
	"drover/e2e/parts"
)

// bench is all that a run needs.
type bench struct {
	options
	dir      string // configs, logs, consoles and what is built
	lock     *os.File
	drover   string // the program
	built    string // and where it is from
	programs *programs
	site     *site.Built // what a machine boots; made when a part asks for it
	log      io.Writer
}

// openBench gets the peers and builds drover.
func openBench(ctx context.Context, o options, log io.Writer) (_ *bench, err error) {
	if runtime.NumCPU() < 2 {
		return nil, errors.New("one processor only: a server and what asks it need one each")
	}
	cache, err := parts.CacheDir()
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, log: log, dir: filepath.Join(cache, "bench-boot-run")}
	if err := b.clear(); err != nil {
		return nil, err
	}
	if b.programs, err = fetchPrograms(ctx, cache, log); err != nil {
		return nil, err
	}
	return b, b.build(ctx)
}

// clear makes the directory anew, unless another run is at work in it.
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

// build builds drover, unless it is given.
func (b *bench) build(ctx context.Context) (err error) {
	if b.options.drover != "" {
		b.built = b.options.drover
		b.drover, err = exec.LookPath(b.options.drover)
		if err == nil {
			b.drover, err = filepath.Abs(b.drover)
		}
		return err
	}
	b.built = "built from this source"
	if rev, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		b.built = strings.TrimSpace(string(rev))
	}
	b.drover = filepath.Join(b.dir, "bin", "drover")
	return b.compile(ctx, b.drover, "drover/cmd/drover")
}

// compile builds a program of this module.
func (b *bench) compile(ctx context.Context, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// close removes all but what -keep asks for.
func (b *bench) close() error {
	defer b.lock.Close()
	if b.keep {
		b.say("configs, logs and consoles are in %s", b.dir)
		return nil
	}
	return os.RemoveAll(b.dir)
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }

// parts of the rack: the node image, its kernel and drover's initrd.
func (b *bench) rack(ctx context.Context) (*site.Built, error) {
	if b.site != nil {
		return b.site, nil
	}
	if err := site.Check(); err != nil {
		return nil, err
	}
	var err error
	b.site, err = site.Build(ctx, b.log)
	return b.site, err
}
