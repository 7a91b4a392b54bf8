// Package external runs the programs that a build needs: tar2sqfs.
//
// [Find] finds a program and its version, and [Run] runs one on data that is made
// while it runs. The package does not know what the programs do.
package external

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Find returns the path of a program and the version that it prints, or "unknown". The
// error wraps [exec.ErrNotFound] when the program is not installed.
func Find(ctx context.Context, name string) (path, version string, err error) {
	if path, err = exec.LookPath(name); err != nil {
		return "", "", err
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s --version: %w", path, err)
	}
	version = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`).FindString(string(out))
	return path, cmp.Or(version, "unknown"), nil
}

// Run starts cmd, calls write with its standard input, and waits for its end. When
// write fails, Run kills the program: the result of incomplete input must not look like
// a whole file. When the program fails, the error has its standard error, and its
// standard output unless cmd.Stdout is set.
func Run(ctx context.Context, cmd *exec.Cmd, write func(io.Writer) error) error {
	output := &tail{limit: 4 << 10}
	cmd.Stderr = output
	if cmd.Stdout == nil {
		cmd.Stdout = output
	}
	name := filepath.Base(cmd.Path)
	read, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	// A larger pipe than 64 KiB: fewer changes between the two programs. It may be refused.
	if conn, err := stdin.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
	cmd.Stdin = read
	err = cmd.Start()
	read.Close()
	if err != nil {
		stdin.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	writeErr := write(stdin)
	endedEarly := errors.Is(writeErr, syscall.EPIPE) // its own message has the cause
	if writeErr != nil && !endedEarly {
		_ = cmd.Process.Kill()
	}
	stdin.Close()
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case writeErr != nil && !endedEarly:
		return writeErr
	case err != nil:
		return fmt.Errorf("%s: %w: %s", name, err, output)
	}
	return writeErr
}

// tail keeps the end of a program's output, at most limit bytes.
type tail struct {
	limit int
	buf   []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(b), nil
}

// String returns the output on one line.
func (t *tail) String() string {
	if s := bytes.TrimSpace(t.buf); len(s) > 0 {
		return strings.ReplaceAll(string(s), "\n", "; ")
	}
	return "(no output)"
}
