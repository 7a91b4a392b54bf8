package initrd

import (
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// zstdWindow is the zstd window of an initrd, as a power of two of bytes: 8 MiB. The
// kernel's decoder accepts 128 MiB, but a small machine holds the window in memory
// beside the compressed and the unpacked initrd.
const zstdWindow = 23

// compressor names what Compress does, with the version of the library. Equal contents
// under one name have equal compressed bytes. A test compares it with go.mod.
const compressor = "github.com/klauspost/compress v1.20.3 default 23"

// compress copies r to w and compresses it with zstd. Equal input gives equal output on
// all hosts: the library belongs to this program, and one goroutine does it, because
// their number decides how the library cuts the stream into blocks. The library's next
// level gives a fiftieth less in two and a half times the time, its best a tenth less in as
// much time as the whole squashfs takes. (The program zstd gives other bytes with each of its
// versions.)
func compress(w io.Writer, r io.Reader) error {
	zw, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<zstdWindow))
	if err != nil {
		return err
	}
	_, err = io.Copy(zw, r)
	return errors.Join(err, zw.Close())
}
