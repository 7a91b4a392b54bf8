package initrd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"drover/imagebuild/feed"

	"github.com/klauspost/compress/zstd"
)

// ZstdProgram makes an initrd a tenth smaller than the library does, and each
// boot of each machine fetches it. Where it is not installed the library has to
// do.
const ZstdProgram = "zstd"

// FindZstd returns the program and its version, both empty when there is none.
func FindZstd(ctx context.Context) (program, version string) {
	program, err := exec.LookPath(ZstdProgram)
	if err != nil {
		return "", ""
	}
	out, err := exec.CommandContext(ctx, program, "--version", "--quiet").Output()
	if err != nil {
		return "", ""
	}
	// *** Zstandard CLI (64-bit) v1.5.4, by Yann Collet ***
	for word := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(word, "v") {
			return program, strings.Trim(word, "v,")
		}
	}
	return program, "unknown"
}

// initrdWindow is the zstd window of an initrd, as a power of two of bytes: 4
// MiB, far below what the kernel's decoder takes (128 MiB), since a small machine
// holds it beside the compressed and the unpacked initrd.
const initrdWindow = 22

// compressInitrd has write write to a compressor, and what comes out to w. The
// program is zstd's; empty: the library. Either gives equal output for equal
// input.
func compressInitrd(ctx context.Context, program string, w io.Writer, write func(io.Writer) error) error {
	if program == "" {
		// One goroutine: more of them cut the stream into blocks that depend on
		// their number, and so on the machine.
		zw, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<initrdWindow))
		if err != nil {
			return err
		}
		return errors.Join(write(zw), zw.Close())
	}
	// Of what levels differ in, searching less than level 17 does costs 0.6 % and
	// saves a third of the time.
	cmd := exec.CommandContext(ctx, program, "-17", fmt.Sprintf("--zstd=wlog=%d,slog=4,tlen=32", initrdWindow), "--quiet", "--stdout", "-T1")
	cmd.Stdout = w
	return feed.Run(ctx, cmd, write)
}
