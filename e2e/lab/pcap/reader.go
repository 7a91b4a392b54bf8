package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Magic numbers of the classic format, which also tell the byte order.
const (
	magicMicro = 0xa1b2c3d4
	magicNano  = 0xa1b23c4d
)

// maxFrame bounds a record; tcpdump's own limit. Frames on a bridge can be far
// larger than an MTU where the kernel leaves segmentation to the hardware.
const maxFrame = 256 << 10

// Frames returns the frames of a capture file, each valid until the next one. An error comes
// last, without a frame; io.EOF and io.ErrUnexpectedEOF are those of a file that tcpdump has
// not written to its end.
func Frames(file string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		r, err := NewReader(bufio.NewReaderSize(f, 1<<20))
		if err != nil {
			yield(nil, err)
			return
		}
		for {
			frame, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(frame, err) || err != nil {
				return
			}
		}
	}
}

// Reader reads the frames of a capture.
type Reader struct {
	r     io.Reader
	order binary.ByteOrder
	buf   []byte
}

// NewReader reads the header of a capture file. It must be of Ethernet.
func NewReader(r io.Reader) (*Reader, error) {
	var h [24]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, fmt.Errorf("capture header: %w", err)
	}
	p := &Reader{r: r}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if m := order.Uint32(h[:]); m == magicMicro || m == magicNano {
			p.order = order
		}
	}
	if p.order == nil {
		return nil, errors.New("not a capture file")
	}
	const ethernet = 1
	if link := p.order.Uint32(h[20:]); link != ethernet {
		return nil, fmt.Errorf("capture of link type %d (want Ethernet)", link)
	}
	return p, nil
}

// Next returns the next frame, valid until the call after, or io.EOF. A frame
// that was captured only in part is an error.
func (p *Reader) Next() ([]byte, error) {
	var h [16]byte
	if _, err := io.ReadFull(p.r, h[:]); err != nil {
		return nil, err // io.EOF between records, io.ErrUnexpectedEOF within
	}
	captured, length := p.order.Uint32(h[8:]), p.order.Uint32(h[12:])
	switch {
	case captured > maxFrame:
		return nil, fmt.Errorf("frame of %d bytes", captured)
	case captured < length:
		return nil, fmt.Errorf("only %d of the %d bytes of a frame were captured", captured, length)
	}
	if cap(p.buf) < int(captured) {
		p.buf = make([]byte, maxFrame)
	}
	p.buf = p.buf[:captured]
	if _, err := io.ReadFull(p.r, p.buf); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return p.buf, nil
}
