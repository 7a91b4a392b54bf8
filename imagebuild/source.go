package imagebuild

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// SourceForms lists the forms of a source, for help texts and errors.
const SourceForms = "dir:PATH, tar:FILE, oci:DIR[:TAG] or oci-archive:FILE[:TAG]"

// Platform is an operating system and a processor, written linux/amd64 or
// linux/arm/v7.
type Platform struct {
	OS, Arch, Variant string
}

// ParsePlatform reads the usual form. The empty string is linux/amd64.
func ParsePlatform(s string) (Platform, error) {
	if s == "" {
		return Platform{OS: "linux", Arch: "amd64"}, nil
	}
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" || parts[len(parts)-1] == "" {
		return Platform{}, fmt.Errorf("platform %q is not of the form linux/ARCH or linux/ARCH/VARIANT", s)
	}
	return Platform{OS: parts[0], Arch: parts[1], Variant: strings.Join(parts[2:], "")}, nil
}

// String returns the form that [ParsePlatform] reads.
func (p Platform) String() string {
	s := p.OS + "/" + p.Arch
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// source is an opened image.
type source struct {
	layers  []layer   // from the lowest
	created time.Time // of the image's config; zero when it says nothing
	digest  string    // of the image's manifest; empty for what is no OCI image
	close   func() error
}

// layer is one step of an image: a stream that is verified as it is read.
type layer struct {
	name string // for people
	size int64  // of the stream as stored; 0 when unknown
	read func(ctx context.Context, l *layerReader, progress func(n int64)) ([]entry, error)
}

// cutSource splits a source into its form and the rest.
func cutSource(src string) (form, arg string, err error) {
	form, arg, _ = strings.Cut(src, ":")
	if !slices.Contains([]string{"dir", "tar", "oci", "oci-archive"}, form) || arg == "" {
		return "", "", fmt.Errorf("source %q is not one of %s", src, SourceForms)
	}
	return form, arg, nil
}

// openSource opens what the operator named.
func openSource(src string, platform Platform) (*source, error) {
	form, arg, err := cutSource(src)
	if err != nil {
		return nil, err
	}
	var s *source
	switch form {
	case "dir":
		s, err = openDir(arg)
	case "tar":
		s, err = openTar(arg)
	case "oci":
		s, err = openOCI(arg, platform)
	case "oci-archive":
		s, err = openOCIArchive(arg, platform)
	}
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", src, err)
	}
	return s, nil
}

// cutTag splits PATH[:TAG]. A path that exists as a whole wins, so that colons
// in names do no harm.
func cutTag(arg string) (path, tag string) {
	if _, err := os.Stat(arg); err == nil {
		return arg, ""
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 && !strings.Contains(arg[i:], "/") {
		return arg[:i], arg[i+1:]
	}
	return arg, ""
}

// openTar opens one tar of a root file system: not a layer, so names that begin
// with .wh. are ordinary names.
func openTar(path string) (*source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	read := func(ctx context.Context, l *layerReader, progress func(int64)) ([]entry, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		l.whiteouts = false
		return readStream(&meter{ctx: ctx, r: f, progress: progress}, l)
	}
	return &source{
		layers: []layer{{name: path, size: st.Size(), read: read}},
		close:  func() error { return nil },
	}, nil
}

// readStream reads a tar stream, compressed or not, and then what follows it,
// so that a digest over the stream covers all of it.
func readStream(r io.Reader, l *layerReader) ([]entry, error) {
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

// maxWindow is the largest zstd window that is accepted, zstd --long=27.
const maxWindow = 128 << 20

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
		d, err := zstd.NewReader(br, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
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
