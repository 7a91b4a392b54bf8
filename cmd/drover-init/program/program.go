// Package program runs programs of the image, and splits their output into lines without
// tokens: [Run].
package program

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/cmd/drover-init/console"
	"drover/cmd/drover-init/nodeconfig"
	"drover/pools/printable"
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
	group := cmd.Process.Pid
	stop := context.AfterFunc(ctx, func() { _ = unix.Kill(-group, unix.SIGKILL) }) // an error: the group has ended
	err := cmd.Wait()
	stop()
	out.end()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nodeconfig.Ignore(err, exec.ErrWaitDelay)
}

// lineWriter splits a stream into lines.
type lineWriter struct {
	line func(string)
	buf  []byte
	skip bool // skip the rest of a line that is too long
}

func (w *lineWriter) Write(b []byte) (int, error) {
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
