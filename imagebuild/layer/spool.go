package layer

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Spool holds the contents of all files of the layers, one after the other, in
// a temporary file without a name. The layers are compressed streams, and the
// squashfs wants its files sorted: this is what stands between.
type Spool struct {
	f     *os.File
	off   int64
	limit int64 // bytes
	chunk []byte
	zeros []byte
}

const spoolChunk = 256 << 10

// NewSpool makes a spool in dir. Its file is unlinked at once, so that nothing
// remains whatever happens.
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

// Close removes the spool.
func (s *Spool) Close() error { return s.f.Close() }

// add stores size bytes of r and returns how to read them again. Runs of zeros
// become holes: sparse files cost what they hold, not what they claim.
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

// Finish makes trailing holes part of the file.
func (s *Spool) Finish() error { return s.f.Truncate(s.off) }
