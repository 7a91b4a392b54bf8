package tftp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxTextFile is the largest file that can be served as text, in bytes. Its size as text is
// known only when it was read to its end.
const maxTextFile = 1 << 20

// textPiece is what is read at a time to count the line ends, in bytes.
const textPiece = 64 << 10

// textFile is a file as text for mode netascii (RFC 1350, RFC 764): a line ends with CR LF, and a
// CR of the file is followed by a NUL. It is read once, from its start to its end.
type textFile struct {
	size int64 // as text, in bytes

	in   *bufio.Reader // of the file
	next int64         // the offset that is read next
	rest byte          // the second byte of a pair whose first one was the last to be read
	torn bool          // there is a rest
}

// newTextFile returns a file of a size in bytes as text. It reads the whole file.
func newTextFile(f io.ReaderAt, size int64) (*textFile, error) {
	t := &textFile{size: size, in: bufio.NewReader(io.NewSectionReader(f, 0, size))}
	b := make([]byte, textPiece)
	for offset := int64(0); offset < size; offset += textPiece {
		b = b[:min(textPiece, size-offset)]
		if read, err := f.ReadAt(b, offset); read < len(b) {
			return nil, fmt.Errorf("byte %d: %w", offset+int64(read), err)
		}
		t.size += int64(bytes.Count(b, []byte{'\r'}) + bytes.Count(b, []byte{'\n'}))
	}
	return t, nil
}

// Size returns the size as text, in bytes.
func (t *textFile) Size() int64 { return t.size }

// ReadAt reads the text at the end of what was read before.
func (t *textFile) ReadAt(b []byte, offset int64) (int, error) {
	if offset != t.next {
		return 0, errors.New("text is read in order only")
	}
	for i := range b {
		c := t.rest
		if t.torn {
			t.torn = false
		} else {
			var err error
			if c, err = t.in.ReadByte(); err != nil {
				return i, err
			}
			switch c {
			case '\r':
				t.rest, t.torn = 0, true
			case '\n':
				c, t.rest, t.torn = '\r', '\n', true
			}
		}
		b[i] = c
		t.next++
	}
	return len(b), nil
}
