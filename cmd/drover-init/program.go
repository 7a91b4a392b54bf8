package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/cmd/drover-init/nodeconfig"
	"drover/cmd/drover-init/rootfs"
	"drover/pools"
	"drover/pools/printable"
)

// Limits of the output of programs. A line is cut for display after the tokens in it
// are replaced, so that no part of one is shown.
const (
	maxLine      = 64 << 10
	maxShownLine = 1000
)

// runProgram runs cmd until it ends. When ctx ends, it kills cmd and its children. It
// calls line with each line of the output, without tokens.
func runProgram(ctx context.Context, cmd *exec.Cmd, line func(string)) error {
	out := &lineWriter{line: line}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
	// A daemon that the program started may hold its output open.
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
	s := printable.Text(redact(string(bytes.TrimRight(w.buf, "\r"))))
	if len(s) > maxShownLine {
		s = strings.ToValidUTF8(s[:maxShownLine], "") + "..."
	}
	if s != "" {
		w.line(s)
	}
	w.buf, w.skip = w.buf[:0], false
}

// scripts runs the operator's scripts of one stage.
type scripts struct {
	Dir   string        // the running script is a file in it
	Env   []string      // in addition to PATH and HOME
	Limit time.Duration // for each
	Say   func(topic, format string, args ...any)
}

// scriptEnv returns the environment variables of a script: those of the lease and of the
// operator, then its node and stage.
func scriptEnv(s bootState, stage pools.Stage) []string {
	return append(slices.Clone(s.Env),
		"DROVER_NODE="+s.Node,
		"DROVER_POOL="+s.Pool,
		"DROVER_MAC="+s.MAC.String(),
		"DROVER_ADDRESS="+s.Address.String(),
		"DROVER_URL="+s.URL,
		"DROVER_STAGE="+string(stage),
	)
}

// ofStage returns the scripts of a stage, in the order of their names.
func ofStage(all []pools.NamedScript, stage pools.Stage) []pools.NamedScript {
	var some []pools.NamedScript
	for _, s := range all {
		if s.Stage == stage {
			some = append(some, s)
		}
	}
	slices.SortStableFunc(some, func(a, b pools.NamedScript) int { return strings.Compare(a.Name, b.Name) })
	return some
}

// run runs one script. Without a first line "#!..." the script runs in /bin/sh, which reads
// it with "." if it is one to source.
func (s *scripts) run(ctx context.Context, script pools.NamedScript) error {
	if script.Name == "" || strings.ContainsAny(script.Name, "/\x00") || script.Name[0] == '.' {
		return fmt.Errorf("script %q: not a name for a script", script.Name)
	}
	path := filepath.Join(s.Dir, string(script.Stage)+"-"+script.Name)
	if err := nodeconfig.WriteFile(path, []byte(script.Run), 0o700); err != nil {
		return fmt.Errorf("script %q: %w", script.Name, err)
	}
	cmd := exec.Command(path)
	switch {
	case script.Source:
		cmd = exec.Command("/bin/sh", "-c", `. "$1"`, "sh", path)
	case !strings.HasPrefix(script.Run, "#!"):
		cmd = exec.Command("/bin/sh", path)
	}
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=" + rootfs.SearchPath, "HOME=/root"}, s.Env...)
	cmd.WaitDelay = 2 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limit, fmt.Errorf("not done after %v", s.Limit))
	defer cancel()
	last := ""
	start := time.Now()
	err := runProgram(ctx, cmd, func(line string) {
		last = line
		s.Say("script", "%s: %s", script.Name, line)
	})
	err = errors.Join(err, nodeconfig.Ignore(os.Remove(path), unix.ENOENT))
	switch {
	case err != nil && last != "":
		return fmt.Errorf("script %q: %w, after it printed: %s", script.Name, err, last)
	case err != nil:
		return fmt.Errorf("script %q: %w", script.Name, err)
	}
	s.Say("script", "%s: done in %.1f s", script.Name, time.Since(start).Seconds())
	return nil
}
