package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// boltFile reads a bbolt file: a B+ tree of pages. bbolt itself maps the file into
// memory and trusts it, so damage would end the process. Here each offset is checked.
type boltFile struct {
	data     []byte
	pageSize uint64
	root     uint64
	left     uint64 // pages that can still be read: no page is in the tree twice

	// lost is called for each part of the tree that cannot be read. An error of it
	// ends the reading.
	lost func(error) error
}

// The layout of a page: its number (8 bytes), flags (2), number of elements (2), number
// of pages that follow it (4); then elements of 16 bytes. Numbers are little endian.
const (
	boltHeader  = 16
	boltElement = 16

	boltBranch = 1 // flags of a page
	boltLeaf   = 2

	boltBucket = 1 // flag of an element

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	boltMeta    = 64 // bytes of a meta page behind the header
	boltDepth   = 64 // more levels than any tree has
)

var errBolt = errors.New("not a page of a bbolt file")

// openBolt finds the newest valid meta page.
func openBolt(data []byte) (*boltFile, error) {
	b, newest := &boltFile{data: data}, uint64(0)
	for _, at := range []uint64{0, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16} {
		if at+boltHeader+boltMeta > uint64(len(data)) {
			break
		}
		m := data[at+boltHeader:][:boltMeta]
		sum := fnv.New64a()
		_, _ = sum.Write(m[:56])
		size, tx := uint64(binary.LittleEndian.Uint32(m[8:])), binary.LittleEndian.Uint64(m[48:])
		valid := binary.LittleEndian.Uint32(m) == boltMagic && binary.LittleEndian.Uint32(m[4:]) == boltVersion &&
			binary.LittleEndian.Uint64(m[56:]) == sum.Sum64() && (at == 0 || at == size) && size >= 1<<10 && size <= 1<<16
		if valid && (b.pageSize == 0 || tx > newest) {
			b.pageSize, b.root, newest = size, binary.LittleEndian.Uint64(m[16:]), tx
		}
	}
	if b.pageSize == 0 {
		return nil, errors.New("no valid meta page of a bbolt file")
	}
	b.left = uint64(len(data)) / b.pageSize
	return b, nil
}

// page returns a page, with the pages that follow it.
func (b *boltFile) page(id uint64) ([]byte, error) {
	pages := uint64(len(b.data)) / b.pageSize
	if id >= pages {
		return nil, fmt.Errorf("page %d: %w", id, errBolt)
	}
	p := b.data[id*b.pageSize:]
	more := uint64(binary.LittleEndian.Uint32(p[12:]))
	if binary.LittleEndian.Uint64(p) != id || more >= pages-id || 1+more > b.left {
		return nil, fmt.Errorf("page %d: %w", id, errBolt)
	}
	b.left -= 1 + more
	return p[:(1+more)*b.pageSize], nil
}

// each calls f with each element of the leaves below a page.
func (b *boltFile) each(page []byte, depth int, f func(flags uint32, key, value []byte) error) error {
	if len(page) < boltHeader {
		return b.lost(errBolt)
	}
	flags, count := binary.LittleEndian.Uint16(page[8:]), int(binary.LittleEndian.Uint16(page[10:]))
	if flags != boltBranch && flags != boltLeaf || boltHeader+count*boltElement > len(page) || depth > boltDepth {
		return b.lost(fmt.Errorf("page %d: %w", binary.LittleEndian.Uint64(page), errBolt))
	}
	for i := range count {
		var err error
		if element := page[boltHeader+i*boltElement:]; flags == boltBranch {
			err = b.child(binary.LittleEndian.Uint64(element[8:]), depth, f)
		} else {
			err = b.leaf(element, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *boltFile) child(id uint64, depth int, f func(flags uint32, key, value []byte) error) error {
	page, err := b.page(id)
	if err != nil {
		return b.lost(err)
	}
	return b.each(page, depth+1, f)
}

// leaf calls f with an element of a leaf: its flags, the offset of the key from the
// element, and the lengths of key and value, 4 bytes each.
func (b *boltFile) leaf(element []byte, f func(flags uint32, key, value []byte) error) error {
	at := uint64(binary.LittleEndian.Uint32(element[4:]))
	key := at + uint64(binary.LittleEndian.Uint32(element[8:]))
	value := key + uint64(binary.LittleEndian.Uint32(element[12:]))
	if value > uint64(len(element)) {
		return b.lost(errBolt)
	}
	return f(binary.LittleEndian.Uint32(element), element[at:key], element[key:value])
}

// buckets returns the buckets of the file, by name.
func (b *boltFile) buckets() (map[string][]byte, error) {
	all := make(map[string][]byte)
	err := b.child(b.root, 0, func(flags uint32, key, value []byte) error {
		if flags&boltBucket != 0 {
			all[string(key)] = value
		}
		return nil
	})
	return all, err
}

// bucket calls f with each key and value of a bucket: the number of its first page, 8
// bytes, or 0 and, 16 bytes later, the page itself.
func (b *boltFile) bucket(value []byte, f func(key, value []byte) error) error {
	if len(value) < 16 {
		return b.lost(errBolt)
	}
	each := func(flags uint32, key, value []byte) error {
		if flags&boltBucket != 0 {
			return nil
		}
		return f(key, value)
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return b.child(root, 0, each)
	}
	return b.each(value[16:], 0, each)
}
