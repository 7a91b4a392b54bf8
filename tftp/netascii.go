package tftp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxText is the largest file that is served in mode netascii, in bytes. Its size as text
// is known only when it was read to its end.
const maxText = 1 << 20

// netascii is a file in mode netascii (RFC 1350, RFC 764): a line ends with CR LF, and a CR
// of the file is followed by a NUL. It is read once, from its start to its end.
type netascii struct {
	size int64 // as text, in bytes

	in   *bufio.Reader // of the file
	next int64         // the offset that is read next
	rest byte          // the second byte of a pair whose first one was the last to be read
	torn bool          // there is a rest
}

// newNetascii returns a file as text. The error for one that is too large is a refusal.
func newNetascii(f File) (*netascii, error) {
	if f.Size() > maxText {
		return nil, &refusal{codeIllegal, "too large for mode netascii: use octet (binary)",
			fmt.Errorf("mode netascii: file of %d bytes, at most %d have it", f.Size(), maxText)}
	}
	n := &netascii{size: f.Size(), in: bufio.NewReader(io.NewSectionReader(f, 0, f.Size()))}
	b := make([]byte, minPiece)
	for offset := int64(0); offset < f.Size(); offset += minPiece {
		b = b[:min(minPiece, f.Size()-offset)]
		if read, err := f.ReadAt(b, offset); read < len(b) {
			return nil, &refusal{codeOther, "server cannot read the file", fmt.Errorf("byte %d: %w", offset+int64(read), err)}
		}
		n.size += int64(bytes.Count(b, []byte{'\r'}) + bytes.Count(b, []byte{'\n'}))
	}
	return n, nil
}

// ReadAt reads the text at the end of what was read before.
func (n *netascii) ReadAt(b []byte, offset int64) (int, error) {
	if offset != n.next {
		return 0, errors.New("text is read in order only")
	}
	for i := range b {
		c := n.rest
		if n.torn {
			n.torn = false
		} else {
			var err error
			if c, err = n.in.ReadByte(); err != nil {
				return i, err
			}
			switch c {
			case '\r':
				n.rest, n.torn = 0, true
			case '\n':
				c, n.rest, n.torn = '\r', '\n', true
			}
		}
		b[i] = c
		n.next++
	}
	return len(b), nil
}
