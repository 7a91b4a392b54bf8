package buildcache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// patience is the time limit of a program after SIGTERM: buildah unmounts its file
	// systems.
	patience = 30 * time.Second
	// heartbeat is the interval at which a long step reports that it still runs.
	heartbeat = 30 * time.Second
	// tailSize is the maximum size of the output in a program's error, in bytes.
	tailSize = 4 << 10
)

// command returns a program that ends, with all its children, when ctx ends.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = patience
	return cmd
}

// run runs a program. Its output goes to out; the last part of it is in the error.
func run(cmd *exec.Cmd, out io.Writer) error {
	var last tail
	w := io.MultiWriter(out, &last)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, last.String())
	}
	return nil
}

// output runs a program and returns the one line that it prints.
func output(cmd *exec.Cmd) (string, error) {
	var stdout bytes.Buffer
	var stderr tail
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// timed runs a long step, and logs its start, its progress and its end.
func timed(log io.Writer, name string, step func() error) error {
	start := time.Now()
	seconds := func() int { return int(time.Since(start).Round(time.Second).Seconds()) }
	fmt.Fprintf(log, "%s: building\n", name)
	done := make(chan struct{})
	var beat sync.WaitGroup
	beat.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Fprintf(log, "%s: building, %d s\n", name, seconds())
			}
		}
	})
	err := step()
	close(done)
	beat.Wait()
	if err == nil {
		fmt.Fprintf(log, "%s: built in %d s\n", name, seconds())
	}
	return err
}

// tail keeps the last lines of the text that is written to it.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String returns whole lines only, unless there is but one.
func (t *tail) String() string {
	s := string(t.buf)
	if len(t.buf) == tailSize {
		if _, rest, ok := strings.Cut(s, "\n"); ok && rest != "" {
			s = rest
		}
	}
	return strings.TrimSpace(s)
}

// shared is a writer of lines for several goroutines.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

// share returns a writer for several goroutines. A nil writer drops everything.
func share(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return &shared{w: w}
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
