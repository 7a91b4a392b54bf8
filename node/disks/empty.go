package disks

import (
	"bytes"
	"fmt"
	"io"
)

// margin is the part at both ends of a disk that has to be empty. All partition tables, and
// all superblocks of RAID, LVM, ZFS and file systems, begin there.
const margin = 4 << 20

// superblocks are the offsets of copies of superblocks further inside: of Btrfs.
var superblocks = []int64{64 << 20, 256 << 30}

// signature is content at a known place, for an error that an operator understands.
type signature struct {
	name string
	at   int64 // from the end of the disk, if negative
	text string
}

// signatures are those of the usual owners of disks.
var signatures = []signature{
	{"a GUID partition table that is damaged", 512, "EFI PART"},
	{"LUKS encryption", 0, "LUKS\xba\xbe"},
	{"an XFS file system", 0, "XFSB"},
	{"an ext2, ext3 or ext4 file system", 1080, "\x53\xef"},
	{"a Btrfs file system", 64<<10 + 64, "_BHRfS_M"},
	{"an LVM physical volume", 512, "LABELONE"},
	{"an LVM physical volume", 0, "LABELONE"},
	{"a swap area", 4086, "SWAPSPACE2"},
	{"a RAID member (md)", 0, "\xfc\x4e\x2b\xa9"},
	{"a RAID member (md)", 4096, "\xfc\x4e\x2b\xa9"},
	{"a RAID member (md)", -(8 << 10), "\xfc\x4e\x2b\xa9"},
	{"a RAID member (DDF)", -512, "\xde\x11\xde\x11"},
	{"a VMFS datastore", 1 << 20, "\x0d\xd0\x01\xc0"},
	{"an NTFS file system", 3, "NTFS    "},
	{"an ISO 9660 file system", 32<<10 + 1, "CD001"},
	{"a Ceph OSD", 0, "bluestore block device"},
	{"a partition table (MBR)", 510, "\x55\xaa"},
}

// empty returns an error unless a disk has no data.
func empty(disk io.ReaderAt, size int64) error {
	if size < 4*margin {
		return fmt.Errorf("it has only %d MB", size>>20)
	}
	for _, s := range signatures {
		at := s.at
		if at < 0 {
			at += size
		}
		b := make([]byte, len(s.text))
		if _, err := disk.ReadAt(b, at); err != nil {
			return err
		}
		if string(b) == s.text {
			return fmt.Errorf("it has %s", s.name)
		}
	}
	parts := [][2]int64{{0, margin}, {size - margin, margin}}
	for _, at := range superblocks {
		if at+4096 <= size {
			parts = append(parts, [2]int64{at, 4096})
		}
	}
	zero, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for _, p := range parts {
		for at := p[0]; at < p[0]+p[1]; at += int64(len(b)) {
			b := b[:min(int64(len(b)), p[0]+p[1]-at)]
			if _, err := disk.ReadAt(b, at); err != nil {
				return err
			}
			if !bytes.Equal(b, zero[:len(b)]) {
				return fmt.Errorf("it has unknown data at byte %d", at+int64(firstNonzero(b)))
			}
		}
	}
	return nil
}

func firstNonzero(b []byte) int { return bytes.IndexFunc(b, func(r rune) bool { return r != 0 }) }
