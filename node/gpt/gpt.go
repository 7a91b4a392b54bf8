// Package gpt reads and writes GUID partition tables (UEFI specification, chapter 5):
//
//	t, err := gpt.Read(disk, size, sector)      // ErrNone: there is none
//	t, err := gpt.New(size, sector, names, sizes)
//	err = t.Write(disk, size, sector)
//
// It knows nothing of file systems, and of what names mean.
package gpt

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"unicode/utf16"
)

// GUID is the identifier of a disk, of a partition, or of its type, in the byte order of
// the disk.
type GUID [16]byte

// The types of partitions.
var (
	Linux = GUID{0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4}
	Swap  = GUID{0x6d, 0xfd, 0x57, 0x06, 0xab, 0xa4, 0xc4, 0x43, 0x84, 0xe5, 0x09, 0x33, 0xc8, 0x4b, 0x4f, 0x4f}
)

// ErrNone is the error of a disk without a valid table.
var ErrNone = errors.New("no GUID partition table")

// MaxName is the length limit of a partition's name, in UTF-16 units.
const MaxName = 36

// Table is a partition table.
type Table struct {
	Disk       GUID
	Partitions []Partition
}

// Partition is a partition. First and Last are sectors, both included.
type Partition struct {
	Name        string
	Type, ID    GUID
	First, Last int64
}

const (
	signature  = "EFI PART"
	headerSize = 92
	entrySize  = 128
	entries    = 128
	align      = 1 << 20 // bytes: partitions begin at a multiple
)

// ArraySectors returns the size of the array of entries. A table has it behind its header, and its
// copy at the end of the disk before the header.
func ArraySectors(sector int64) int64 { return (entries*entrySize + sector - 1) / sector }

// Want is a partition to make.
type Want struct {
	Name string
	Type GUID
	Size int64 // in bytes; 0, for the last one only: all that is left
}

// New returns a table with new identifiers for a disk of size bytes.
func New(size, sector int64, want []Want) (Table, error) {
	t := Table{Disk: NewGUID()}
	end := size - (ArraySectors(sector)+1)*sector // of the usable part
	at := int64(align)
	for i, w := range want {
		length := w.Size
		if length == 0 && i == len(want)-1 {
			length = end - at
		}
		length = length / align * align
		if length <= 0 || at+length > end {
			return Table{}, fmt.Errorf("partition %d of %d MB does not fit: the disk has %d MB, of which %d are left", i+1, w.Size>>20, size>>20, max(0, end-at)>>20)
		}
		t.Partitions = append(t.Partitions, Partition{Name: w.Name, Type: w.Type, ID: NewGUID(), First: at / sector, Last: (at+length)/sector - 1})
		at += length
	}
	return t, nil
}

// NewGUID returns a random GUID (RFC 9562, version 4).
func NewGUID() (g GUID) {
	_, _ = rand.Read(g[:]) // never an error
	g[7] = g[7]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return g
}

// Read reads the table of a disk of size bytes: the first one, or, if that is damaged, the
// copy at the end of the disk.
func Read(disk io.ReaderAt, size, sector int64) (Table, error) {
	t, err := read(disk, size, sector, 1)
	if err != nil {
		if t, again := read(disk, size, sector, size/sector-1); again == nil {
			return t, nil
		}
	}
	return t, err
}

func read(disk io.ReaderAt, size, sector, at int64) (Table, error) {
	b := make([]byte, sector)
	if at < 1 || at >= size/sector {
		return Table{}, ErrNone
	}
	if _, err := disk.ReadAt(b, at*sector); err != nil {
		return Table{}, err
	}
	h := b[:headerSize]
	sum := binary.LittleEndian.Uint32(h[16:])
	clear(h[16:20])
	if string(h[:8]) != signature || binary.LittleEndian.Uint32(h[12:]) != headerSize || crc32.ChecksumIEEE(h) != sum {
		return Table{}, ErrNone
	}
	array := int64(binary.LittleEndian.Uint64(h[72:]))
	if binary.LittleEndian.Uint32(h[80:]) != entries || binary.LittleEndian.Uint32(h[84:]) != entrySize ||
		array < 1 || array > size/sector-ArraySectors(sector) {
		return Table{}, ErrNone
	}
	all := make([]byte, entries*entrySize)
	if _, err := disk.ReadAt(all, array*sector); err != nil {
		return Table{}, err
	}
	if crc32.ChecksumIEEE(all) != binary.LittleEndian.Uint32(h[88:]) {
		return Table{}, ErrNone
	}
	t := Table{Disk: GUID(h[56:72])}
	for e := range bytesChunks(all) {
		if p := decode(e); p.Type != (GUID{}) {
			t.Partitions = append(t.Partitions, p)
		}
	}
	return t, nil
}

// bytesChunks yields the entries of an array.
func bytesChunks(all []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(all) >= entrySize; all = all[entrySize:] {
			if !yield(all[:entrySize]) {
				return
			}
		}
	}
}

func decode(e []byte) Partition {
	var name []uint16
	for i := 56; i+1 < entrySize; i += 2 {
		u := binary.LittleEndian.Uint16(e[i:])
		if u == 0 {
			break
		}
		name = append(name, u)
	}
	return Partition{
		Type: GUID(e[:16]), ID: GUID(e[16:32]), Name: string(utf16.Decode(name)),
		First: int64(binary.LittleEndian.Uint64(e[32:])), Last: int64(binary.LittleEndian.Uint64(e[40:])),
	}
}

func (p Partition) encode(e []byte) {
	copy(e, p.Type[:])
	copy(e[16:], p.ID[:])
	binary.LittleEndian.PutUint64(e[32:], uint64(p.First))
	binary.LittleEndian.PutUint64(e[40:], uint64(p.Last))
	for i, u := range utf16.Encode([]rune(p.Name)) {
		if i < MaxName {
			binary.LittleEndian.PutUint16(e[56+2*i:], u)
		}
	}
}

// Write writes the table and its copy. The first sectors go out in one write.
func (t Table) Write(disk io.WriterAt, size, sector int64) error {
	if len(t.Partitions) > entries {
		return fmt.Errorf("%d partitions, more than %d", len(t.Partitions), entries)
	}
	all := make([]byte, ArraySectors(sector)*sector)
	for i, p := range t.Partitions {
		p.encode(all[i*entrySize:])
	}
	last := size/sector - 1
	front := bytes.NewBuffer(protectiveMBR(size, sector))
	front.Write(t.header(all, sector, 1, last, 2, last))
	front.Write(all)
	if _, err := disk.WriteAt(front.Bytes(), 0); err != nil {
		return err
	}
	array := last - ArraySectors(sector)
	if _, err := disk.WriteAt(append(all, t.header(all, sector, last, 1, array, last)...), array*sector); err != nil {
		return err
	}
	return nil
}

// header returns the sector of a header, which is at own; the other copy is at other.
func (t Table) header(all []byte, sector, own, other, array, last int64) []byte {
	b := make([]byte, sector)
	put := binary.LittleEndian
	copy(b, signature)
	put.PutUint32(b[8:], 0x00010000)
	put.PutUint32(b[12:], headerSize)
	put.PutUint64(b[24:], uint64(own))
	put.PutUint64(b[32:], uint64(other))
	put.PutUint64(b[40:], uint64(2+ArraySectors(sector)))      // first usable sector
	put.PutUint64(b[48:], uint64(last-ArraySectors(sector)-1)) // last usable sector
	copy(b[56:], t.Disk[:])
	put.PutUint64(b[72:], uint64(array))
	put.PutUint32(b[80:], entries)
	put.PutUint32(b[84:], entrySize)
	put.PutUint32(b[88:], crc32.ChecksumIEEE(all[:entries*entrySize]))
	put.PutUint32(b[16:], crc32.ChecksumIEEE(b[:headerSize]))
	return b
}

// protectiveMBR returns the first sector: old programs see one partition that fills the
// disk.
func protectiveMBR(size, sector int64) []byte {
	b := make([]byte, sector)
	e := b[446:]
	copy(e[1:], []byte{0x00, 0x02, 0x00, 0xee, 0xff, 0xff, 0xff})
	binary.LittleEndian.PutUint32(e[8:], 1)
	binary.LittleEndian.PutUint32(e[12:], uint32(min(size/sector-1, 0xffffffff)))
	b[510], b[511] = 0x55, 0xaa
	return b
}
