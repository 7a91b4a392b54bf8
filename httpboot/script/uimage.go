package script

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// U-Boot's legacy image: a header of 64 bytes, then the content. All numbers are
// big-endian (U-Boot, include/image.h).
const (
	uImageMagic = 0x27051956
	uImageSize  = 64 // of the header

	uImageLinux = 5  // operating system
	uImageARM64 = 22 // architecture

	uImageKernel  = 2 // types
	uImageRamdisk = 3
	uImageScript  = 6

	uImagePlain = 0 // compression
	uImageGzip  = 1
)

// uImage is the content of a header.
type uImage struct {
	kind, compression byte
	name              string // cut off after 31 bytes
	size, sum         uint32 // of the content
	load, entry       uint32 // addresses; only of a kernel
}

// header returns the header. Its time is zero, so that the same content has the
// same header.
func (u uImage) header() []byte {
	b := make([]byte, uImageSize)
	put := binary.BigEndian.PutUint32
	put(b[0:], uImageMagic)
	put(b[12:], u.size)
	put(b[16:], u.load)
	put(b[20:], u.entry)
	put(b[24:], u.sum)
	b[28], b[29], b[30], b[31] = uImageLinux, uImageARM64, u.kind, u.compression
	copy(b[32:uImageSize-1], u.name)
	put(b[4:], crc32.ChecksumIEEE(b)) // of the header with zeros here
	return b
}

// scriptImage wraps a script for U-Boot's command source. The text follows its
// length and a zero, which ends the list of scripts.
func scriptImage(name, text string) []byte {
	content := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	content = append(append(content, 0, 0, 0, 0), text...)
	u := uImage{kind: uImageScript, name: name, size: uint32(len(content)), sum: crc32.ChecksumIEEE(content)}
	return append(u.header(), content...)
}

// wrapped is a file after a header.
type wrapped struct {
	head []byte
	*os.File
	size int64 // of the file
}

func (w *wrapped) Size() int64 { return int64(len(w.head)) + w.size }

func (w *wrapped) ReadAt(b []byte, at int64) (n int, err error) {
	if at < int64(len(w.head)) {
		n = copy(b, w.head[at:])
		if n == len(b) {
			return n, nil
		}
	}
	m, err := w.File.ReadAt(b[n:], at+int64(n)-int64(len(w.head)))
	return n + m, err
}

// isGzip reports whether a file is compressed by gzip, like the kernels of some arm64
// distributions. U-Boot unpacks a kernel if its header has the compression.
func isGzip(f io.ReaderAt) (bool, error) {
	var b [2]byte
	if _, err := f.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return b == [2]byte{0x1f, 0x8b}, nil
}

// checksums caches the CRC-32 of files, which U-Boot's header needs and the image's
// manifest does not have.
type checksums struct {
	mu       sync.Mutex
	byDigest map[string]uint32 // by the file's SHA-256
}

// maxChecksums limits the cache; a generation of an image has two checksums.
const maxChecksums = 256

// of returns the CRC-32 of a file. Concurrent first calls each read the file.
func (c *checksums) of(f *os.File, size int64, digest string) (uint32, error) {
	c.mu.Lock()
	sum, ok := c.byDigest[digest]
	c.mu.Unlock()
	if ok {
		return sum, nil
	}
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byDigest == nil || len(c.byDigest) >= maxChecksums {
		c.byDigest = map[string]uint32{}
	}
	c.byDigest[digest] = h.Sum32()
	return h.Sum32(), nil
}
