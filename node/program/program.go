// Package program runs programs of the image, and splits their output into lines without
// tokens: [Run].
package program

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/printable"
	"drover/node/console"
	"drover/node/nodeconfig"
)

// Limits of the output of programs. A line is cut for display after the tokens in it
// are replaced, so that no part of one is shown.
const (
	maxLine      = 64 << 10
	maxShownLine = 1000
)

// outputDelay is how long [Run] reads on when the program has ended: a daemon that it started
// may hold its output open for ever.
const outputDelay = 2 * time.Second

// killLimit is how long [Run] waits for a program that it has killed. One that waits in the
// kernel, for a disk or a file server, does not end.
const killLimit = 2 * outputDelay

// Run runs cmd until it ends. When ctx ends, it kills cmd and its children. It
// calls line with each line of the output, without tokens.
func Run(ctx context.Context, cmd *exec.Cmd, line func(string)) error {
	out := &lineWriter{line: line}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputDelay
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err := await(ctx, ended, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }) // an error: the group has ended
	out.close()
	return nodeconfig.Ignore(err, exec.ErrWaitDelay)
}

// await waits for a program to end, and kills it when ctx ends.
func await(ctx context.Context, ended <-chan error, kill func()) error {
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		kill()
		select {
		case err = <-ended:
		case <-time.After(killLimit):
			return fmt.Errorf("%w, and it does not end when it is killed: it waits for the kernel, which most often is a disk or a file server", context.Cause(ctx))
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// lineWriter splits a stream into lines, until it is closed.
type lineWriter struct {
	line func(string)
	buf  []byte
	skip bool // skip the rest of a line that is too long

	mu     sync.Mutex
	closed bool // a program that does not end may still write
}

// close ends the last line.
func (w *lineWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	w.closed = true
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return len(b), nil
	}
	for n := 0; n < len(b); {
		part := b[n:]
		end := bytes.IndexByte(part, '\n')
		if end >= 0 {
			part = part[:end]
		}
		if room := maxLine - len(w.buf); !w.skip {
			w.buf = append(w.buf, part[:min(room, len(part))]...)
			w.skip = len(part) > room
		}
		n += len(part)
		if end >= 0 {
			n++
			w.end()
		}
	}
	return len(b), nil
}

// end ends the current line.
func (w *lineWriter) end() {
	s := printable.Text(console.Redact(string(bytes.TrimRight(w.buf, "\r"))))
	if len(s) > maxShownLine {
		s = strings.ToValidUTF8(s[:maxShownLine], "") + "..."
	}
	if s != "" {
		w.line(s)
	}
	w.buf, w.skip = w.buf[:0], false
}
