package imagebuild

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// tar2sqfs is the program that makes the squashfs. It takes owners, modes,
// extended attributes, devices and hard links from a tar stream, needs neither
// root nor the files on disk, and gives equal output for equal input.
// mksquashfs -tar does neither: it stores the caller's uid in the root inode
// and breaks symbolic links with long targets (4.5.1).
const tar2sqfs = "tar2sqfs"

// Levels of zstd.
const (
	DefaultLevel = 3 // fast; 15 is about 13 % smaller and takes ten times as long
	maxLevel     = 22
)

// findTar2sqfs returns the program and its version.
func findTar2sqfs(ctx context.Context) (string, string, error) {
	program, err := exec.LookPath(tar2sqfs)
	if err != nil {
		return "", "", fmt.Errorf("%s is missing: install squashfs-tools-ng", tar2sqfs)
	}
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s --version: %w", tar2sqfs, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return "", "", fmt.Errorf("%s --version says nothing", tar2sqfs)
	}
	return program, fields[len(fields)-1], nil
}

// writeSquashfs writes the tree to the file path, which must not exist.
func (t *tree) writeSquashfs(ctx context.Context, program, path string, level int, progress func(int64)) error {
	// --no-skip: without it, tar records that it does not understand are left
	// out of the image without a word.
	cmd := exec.CommandContext(ctx, program, "--quiet", "--no-skip", "--block-size", "131072",
		"--compressor", "zstd", "--comp-extra", fmt.Sprintf("level=%d", level), path)
	stderr := &tail{limit: 4 << 10}
	cmd.Stdout, cmd.Stderr = stderr, stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", tar2sqfs, err)
	}
	w := bufio.NewWriterSize(stdin, 1<<20)
	werr := t.emit(w, progress)
	if werr == nil {
		werr = w.Flush()
	}
	broken := errors.Is(werr, syscall.EPIPE) // it ended first, and its own words say why
	if werr != nil && !broken {
		// A tar that is cut short must not become an image.
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
		return fmt.Errorf("%s: %w: %s", tar2sqfs, err, stderr)
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
