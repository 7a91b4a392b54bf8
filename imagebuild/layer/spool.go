package layer

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Spool stores the contents of all files of the layers, one after the other, in a
// temporary file without a name. The layers are compressed streams with files in any
// order, and the squashfs needs them sorted.
type Spool struct {
	f     *os.File
	off   int64
	limit int64 // in bytes
	chunk []byte
	zeros []byte
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
	return &Spool{f: f, limit: limit, chunk: make([]byte, spoolChunk), zeros: make([]byte, spoolChunk)}, nil
}

// Close releases the file.
func (s *Spool) Close() error { return s.f.Close() }

// add stores size bytes of r and returns a function that opens them. Runs of zeros
// become holes: a sparse file takes the space of its data, not of its size.
func (s *Spool) add(r io.Reader, size int64) (func() (io.ReadCloser, error), error) {
	if size == 0 {
		return nil, nil
	}
	if size < 0 || size > s.limit-s.off {
		return nil, fmt.Errorf("the image is larger than %d bytes", s.limit)
	}
	start := s.off
	for left := size; left > 0; {
		b := s.chunk[:min(left, spoolChunk)]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if !bytes.Equal(b, s.zeros[:len(b)]) {
			if _, err := s.f.WriteAt(b, s.off); err != nil {
				return nil, err
			}
		}
		s.off += int64(len(b))
		left -= int64(len(b))
	}
	return func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(s.f, start, size)), nil
	}, nil
}

// Finish makes holes at the end part of the file. Call it before reading.
func (s *Spool) Finish() error { return s.f.Truncate(s.off) }
