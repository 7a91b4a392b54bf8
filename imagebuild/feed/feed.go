// Package feed runs a program on data that is made while it runs.
package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Run starts cmd, has write write to its standard input, and waits for its end.
// When write fails the program is killed: what is cut short must not become a
// file that looks whole. When the program fails, the error has its
// standard error, and its output if that goes nowhere else.
func Run(ctx context.Context, cmd *exec.Cmd, write func(io.Writer) error) error {
	said := &tail{limit: 4 << 10}
	cmd.Stderr = said
	if cmd.Stdout == nil {
		cmd.Stdout = said
	}
	name := filepath.Base(cmd.Path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	werr := write(stdin)
	broken := errors.Is(werr, syscall.EPIPE) // it ended first, and its own words say why
	if werr != nil && !broken {
		_ = cmd.Process.Kill()
	}
	stdin.Close()
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case werr != nil && !broken:
		return werr
	case err != nil:
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return werr
}

// tail keeps the end of what a program says.
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

func (t *tail) String() string {
	if s := bytes.TrimSpace(t.buf); len(s) > 0 {
		return strings.ReplaceAll(string(s), "\n", "; ")
	}
	return "(it said nothing)"
}
