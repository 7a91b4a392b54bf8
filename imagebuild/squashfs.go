package imagebuild

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"drover/imagebuild/feed"
	"drover/imagebuild/rootfs"
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
func writeSquashfs(ctx context.Context, t *rootfs.Tree, program, path string, level int, progress func(int64)) error {
	// --no-skip: without it, tar records that it does not understand are left
	// out of the image without a word.
	cmd := exec.CommandContext(ctx, program, "--quiet", "--no-skip", "--block-size", "131072",
		"--compressor", "zstd", "--comp-extra", fmt.Sprintf("level=%d", level), path)
	return feed.Run(ctx, cmd, func(stdin io.Writer) error {
		w := bufio.NewWriterSize(stdin, 1<<20)
		if err := t.Emit(w, progress); err != nil {
			return err
		}
		return w.Flush()
	})
}
