package imagebuild

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"drover/imagebuild/external"
	"drover/imagebuild/manifest"
	"drover/imagebuild/rootfs"
)

// tar2sqfs is the program that writes the squashfs. It takes owners, modes, extended
// attributes, devices and hard links from a tar stream, needs neither root nor the
// files on disk, and gives equal output for equal input. mksquashfs -tar (4.5.1) does
// not: it stores the caller's uid in the root inode and breaks symbolic links with long
// targets.
const tar2sqfs = "tar2sqfs"

// Levels of zstd.
const (
	DefaultLevel = 3 // fast; 15 gives an image about 13 % smaller and takes ten times as long
	maxLevel     = 22
)

// writeSquashfs writes the tree to the file path, which must not exist, and returns its
// digests. Program is the path of tar2sqfs.
func writeSquashfs(ctx context.Context, t *rootfs.Tree, program, path string, level int, progress func(int64)) (File, *manifest.Chunks, error) {
	// Without --no-skip, tar2sqfs silently leaves out tar records that it does not
	// understand.
	cmd := exec.CommandContext(ctx, program, "--quiet", "--no-skip", "--block-size", "131072",
		"--compressor", "zstd", "--comp-extra", fmt.Sprintf("level=%d", level), path)
	err := external.Run(ctx, cmd, func(stdin io.Writer) error {
		w := bufio.NewWriterSize(stdin, 1<<20)
		if err := t.Emit(w, progress); err != nil {
			return err
		}
		return w.Flush()
	})
	if err != nil {
		return File{}, nil, err
	}
	f, chunks, err := digestFile(path)
	// The server runs as another user, whatever the umask of this one.
	return f, chunks, errors.Join(err, os.Chmod(path, publicFile))
}
