package fetch

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math"
)

// checker compares a file with the digests of its chunks while it comes. Each byte is
// hashed once: a file whose chunks are right is right.
type checker struct {
	size int64 // of a chunk, in bytes; the last may be shorter
	want [][sha256.Size]byte
	hash hash.Hash // of the bytes of the current chunk
	done int64     // bytes so far, in whole chunks and in the hash
}

// newChecker returns a checker for the chunks of a file; without any, for a file that is
// one chunk with a digest.
func newChecker(c Chunks, digest [sha256.Size]byte) *checker {
	if c.Size == 0 {
		c = Chunks{Size: math.MaxInt64, SHA256: [][sha256.Size]byte{digest}}
	}
	return &checker{size: c.Size, want: c.SHA256, hash: sha256.New()}
}

// write adds bytes of the file. The error is a [wrong] chunk.
func (c *checker) write(b []byte) error {
	for len(b) > 0 {
		part := b[:min(int64(len(b)), c.size-c.done%c.size)]
		c.hash.Write(part) // never returns an error
		c.done += int64(len(part))
		b = b[len(part):]
		if c.done%c.size == 0 {
			if err := c.verify(c.done/c.size - 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// end verifies the last chunk, when all bytes of the file have been written.
func (c *checker) end() error {
	if i := c.done / c.size; c.done%c.size > 0 || i < int64(len(c.want)) {
		return c.verify(i)
	}
	return nil
}

// verify compares the current chunk with its digest, and begins the next one.
func (c *checker) verify(i int64) error {
	if i >= int64(len(c.want)) {
		return fmt.Errorf("%d bytes came, more than %d chunks", c.done, len(c.want))
	}
	if got := [sha256.Size]byte(c.hash.Sum(nil)); got != c.want[i] {
		return &wrong{chunk: i, of: len(c.want), from: i * c.size, to: c.done, got: got, want: c.want[i]}
	}
	c.hash.Reset()
	return nil
}

// reset makes a multiple of the chunks' size, or 0, the bytes so far.
func (c *checker) reset(done int64) {
	c.hash.Reset()
	c.done = done
}

// wrong is the error of a chunk whose digest is wrong.
type wrong struct {
	chunk     int64 // from 0
	of        int
	from, to  int64 // bytes
	got, want [sha256.Size]byte
}

func (w *wrong) Error() string {
	if w.of == 1 {
		return fmt.Sprintf("%d bytes came with sha256 %x, want %x; fetching all of it anew", w.to, w.got, w.want)
	}
	return fmt.Sprintf("chunk %d of %d, bytes %d to %d, came with sha256 %x, want %x; fetching it anew", w.chunk+1, w.of, w.from, w.to-1, w.got, w.want)
}
