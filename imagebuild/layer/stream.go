package layer

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"drover/imagebuild/rootfs"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Source is an opened image.
type Source struct {
	Layers  []Layer   // from the lowest
	Created time.Time // of the image's config; zero when it says nothing
	Digest  string    // of the image's manifest; empty for what is no OCI image
	Close   func() error
}

// Layer is one step of an image: a stream that is verified as it is read.
type Layer struct {
	Name string // for people
	Size int64  // of the stream as stored; 0 when unknown
	Read func(ctx context.Context, l *Reader, progress func(n int64)) ([]rootfs.Entry, error)
}

// OpenTar opens one tar of a root file system: not a layer, so names that begin
// with .wh. are ordinary names.
func OpenTar(path string) (*Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	read := func(ctx context.Context, l *Reader, progress func(int64)) ([]rootfs.Entry, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		l.Whiteouts = false
		return l.Stream(ctx, f, progress)
	}
	return &Source{
		Layers: []Layer{{Name: path, Size: st.Size(), Read: read}},
		Close:  func() error { return nil },
	}, nil
}

// Stream reads a tar stream, compressed or not, and then what follows it, so that
// a digest over the stream covers all of it.
func (l *Reader) Stream(ctx context.Context, stream io.Reader, progress func(int64)) ([]rootfs.Entry, error) {
	r := &meter{ctx: ctx, r: stream, progress: progress}
	plain, err := decompress(r)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	list, err := l.read(plain)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(plain, maxTrailer)); err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return list, nil
}

// maxTrailer is how much may follow the end of a tar inside its compression:
// tar pads to its record size, 10 KiB by default.
const maxTrailer = 16 << 20

// MaxWindow is the largest zstd window that is accepted, zstd --long=27.
const MaxWindow = 128 << 20

// decompress finds out by its first bytes how a stream is compressed. Media
// types and file names lie more often.
func decompress(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReaderSize(r, 128<<10)
	magic, err := br.Peek(6)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(br)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(br, zstd.WithDecoderMaxWindow(MaxWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		return nil, fmt.Errorf("compressed with xz, which is not supported: use zstd or gzip")
	case bytes.HasPrefix(magic, []byte("BZh")):
		return nil, fmt.Errorf("compressed with bzip2, which is not supported: use zstd or gzip")
	}
	return io.NopCloser(br), nil
}

// meter passes a stream on, counts it, and ends it when the build is canceled.
type meter struct {
	ctx      context.Context
	r        io.Reader
	progress func(n int64)
}

func (m *meter) Read(b []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(b)
	m.progress(int64(n))
	return n, err
}
