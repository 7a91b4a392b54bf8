package layer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"drover/imagebuild/rootfs"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Source is an open image.
type Source struct {
	Layers  []Layer   // from the lowest
	Created time.Time // from the image's config; zero when the config has no time
	Digest  string    // of the image's manifest; empty unless it is an OCI image
	Close   func() error
}

// Layer is one layer of an image. A layer with a digest is verified while it is read.
type Layer struct {
	Name string // as progress and errors show it
	Size int64  // of the stream as stored, in bytes; 0 when unknown
	Read func(ctx context.Context, l *Reader, progress func(n int64)) ([]rootfs.Entry, error)
}

// OpenTar opens a tar of a root file system. It is not a layer: names that begin with
// .wh. are ordinary names.
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

// Stream reads a tar stream, compressed or not, to the end of the stream, so that a
// digest over the stream covers all of it. It calls progress with the bytes of each read.
func (l *Reader) Stream(ctx context.Context, stream io.Reader, progress func(int64)) ([]rootfs.Entry, error) {
	return l.StreamTo(ctx, io.Discard, stream, progress)
}

// StreamTo is [Reader.Stream], and writes the decompressed stream to w, for a digest over
// it.
func (l *Reader) StreamTo(ctx context.Context, w io.Writer, stream io.Reader, progress func(int64)) ([]rootfs.Entry, error) {
	r := &meter{ctx: ctx, r: stream, progress: progress}
	content, err := decompress(r)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	var plain io.Reader = content
	if w != io.Discard {
		plain = io.TeeReader(content, w)
	}
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

// maxTrailer bounds the bytes that follow the end of a tar inside its compression. tar
// pads to its record size, 10 KiB by default.
const maxTrailer = 16 << 20

// maxWindow is the largest zstd window that Decompress accepts, in bytes: zstd --long=27.
const maxWindow = 128 << 20

// Decompress returns the content of a stream in a format: "gzip" or "zstd".
func Decompress(r io.Reader, format string) (io.ReadCloser, error) {
	switch format {
	case "gzip":
		return gzip.NewReader(r)
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("compressed with %s, which is not supported: use zstd or gzip", format)
}

// decompress decompresses a stream in the format that its first bytes show. Media types
// and file names are wrong more often.
func decompress(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReaderSize(r, 128<<10)
	start, err := br.Peek(6)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for magic, format := range map[string]string{"\x1f\x8b": "gzip", "\x28\xb5\x2f\xfd": "zstd", "\xfd7zXZ\x00": "xz", "BZh": "bzip2"} {
		if strings.HasPrefix(string(start), magic) {
			return Decompress(br, format)
		}
	}
	return io.NopCloser(br), nil
}

// meter reports the progress of a stream, and ends it when the build is cancelled.
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
