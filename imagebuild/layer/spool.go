package layer

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Spool stores the contents of all files of the layers, one after the other, in a
// temporary file without a name. The layers are compressed streams with files in any
// order, and the squashfs needs them sorted. It also counts what the layers make a build
// keep. Several readers may share one.
type Spool struct {
	f     *os.File
	limit int64  // in bytes
	zeros []byte // spoolChunk of them

	mu      sync.Mutex // of the rest
	off     int64
	entries int // files in all layers so far
	meta    int // bytes of their names and attributes so far
}

const spoolChunk = 256 << 10

// NewSpool creates a spool in dir for at most limit bytes. It unlinks the file
// immediately, so that nothing remains of a build that was killed.
func NewSpool(dir string, limit int64) (*Spool, error) {
	f, err := os.CreateTemp(dir, ".spool-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return &Spool{f: f, limit: limit, zeros: make([]byte, spoolChunk)}, nil
}

// Close releases the file.
func (s *Spool) Close() error { return s.f.Close() }

// reserve returns the place of size bytes.
func (s *Spool) reserve(size int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size < 0 || size > s.limit-s.off {
		return 0, fmt.Errorf("the image is larger than %d bytes", s.limit)
	}
	start := s.off
	s.off += size
	return start, nil
}

// add stores size bytes of r, in pieces of a buffer that is not larger than spoolChunk, and
// returns a function that opens them. Runs of zeros become holes: a sparse file takes the
// space of its data, not of its size.
func (s *Spool) add(r io.Reader, size int64, buffer []byte) (func() (io.ReadCloser, error), error) {
	if size == 0 {
		return nil, nil
	}
	start, err := s.reserve(size)
	if err != nil {
		return nil, err
	}
	for done := int64(0); done < size; {
		b := buffer[:min(size-done, int64(len(buffer)))]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if !bytes.Equal(b, s.zeros[:len(b)]) {
			if _, err := s.f.WriteAt(b, start+done); err != nil {
				return nil, err
			}
		}
		done += int64(len(b))
	}
	return func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(s.f, start, size)), nil
	}, nil
}

// count counts an entry. It returns an error when the image is too large for the memory.
func (s *Spool) count(h *tar.Header) error {
	size := 0
	for _, name := range []string{h.Name, h.Linkname} {
		size += len(name) + perElement*strings.Count(name, "/")
	}
	for key, value := range h.PAXRecords {
		size += len(key) + len(value)
	}
	s.mu.Lock()
	s.entries++
	entries := s.entries
	s.mu.Unlock()
	if entries > maxEntries {
		return fmt.Errorf("the image has more than %d files", maxEntries)
	}
	return s.countMeta(size)
}

// countMeta counts bytes of names and attributes.
func (s *Spool) countMeta(size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta += size; s.meta > maxMeta {
		return fmt.Errorf("the names and attributes of the image's files are larger than %d bytes", maxMeta)
	}
	return nil
}

// Finish makes holes at the end part of the file. Call it before reading.
func (s *Spool) Finish() error { return s.f.Truncate(s.off) }
