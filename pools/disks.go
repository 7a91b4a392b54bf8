package pools

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Mount is a file system that the node mounts before its services start.
type Mount struct {
	Path    string `json:"path"`              // absolute path of the mount point
	Type    string `json:"type"`              // file system: tmpfs, ext4
	Source  string `json:"source,omitempty"`  // default: the type
	Options string `json:"options,omitempty"` // as in fstab
}

// Disk is a disk that a node partitions, formats and mounts before its services start. Only
// an empty disk, or one that drover formatted under this name, is written to.
type Disk struct {
	Name       string      `json:"name"`               // written on the disk, which later boots find by it
	Find       FindDisk    `json:"find,omitzero"`      // default: the first empty disk
	Partitions []Partition `json:"partitions"`         // in the order on the disk
	Required   bool        `json:"required,omitempty"` // the boot fails without the disk; default: a tmpfs takes its place
}

// FindDisk chooses a disk of a machine. All conditions that are set must match.
type FindDisk struct {
	Path    string `json:"path,omitempty"`    // device node: /dev/nvme0n1, or /dev/nvme* with * for any text
	Serial  string `json:"serial,omitempty"`  // serial number or WWID
	MinSize Size   `json:"minSize,omitempty"` // default: any size
	MaxSize Size   `json:"maxSize,omitempty"` // default: any size
}

// Partition is a partition of a [Disk].
type Partition struct {
	Label      string     `json:"label"`                // of the partition and of its file system
	Size       Size       `json:"size,omitempty"`       // default, for the last partition only: all that is left
	Filesystem Filesystem `json:"filesystem,omitempty"` // default ext4
	Mount      Strings    `json:"mount,omitempty"`      // absolute paths; several share the file system, each with a directory of its own
	Options    string     `json:"options,omitempty"`    // of the mount, as in fstab: noatime
}

// Filesystem is the content of a partition of a [Disk].
type Filesystem string

// The values of [Filesystem].
const (
	Ext4  Filesystem = "ext4"
	XFS   Filesystem = "xfs"
	Btrfs Filesystem = "btrfs"
	Swap  Filesystem = "swap"
)

// DiskChange is what becomes of the disks of a node that boots for another tenant than before.
type DiskChange string

// The values of [DiskChange].
const (
	DiskWipe   DiskChange = "wipe"   // they are erased before anything of them is mounted
	DiskRefuse DiskChange = "refuse" // the boot ends with an error
	DiskKeep   DiskChange = "keep"   // they are mounted with their data
)

// TenantName names the tenant whose data the disks of a node have: its cluster, or without one its
// pool.
func TenantName(cluster, pool string) string {
	if cluster != "" {
		return "cluster " + cluster
	}
	return "pool " + pool
}

// Kind returns the content of the partition.
func (p Partition) Kind() Filesystem {
	if p.Filesystem == "" {
		return Ext4
	}
	return p.Filesystem
}

// Size is a number of bytes, 512M or 100GiB, in powers of 1024; or a part of the whole: 50%.
type Size string

// Of returns the size in bytes. The whole is what a percentage is of.
func (s Size) Of(whole int64) (int64, error) {
	bad := Hint("write 512M, 100GiB or 50%", "%q is not a size", string(s))
	if part, ok := strings.CutSuffix(string(s), "%"); ok {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || n < 1 || n > 100 {
			return 0, bad
		}
		return whole / 100 * int64(n), nil
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(s), "B"), "i")
	shift := 0
	if i := strings.IndexAny(text, "KMGT"); i >= 0 && i == len(text)-1 {
		shift = 10 * (1 + strings.IndexByte("KMGT", text[i]))
		text = text[:i]
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 || n > math.MaxInt64>>shift {
		return 0, bad
	}
	return int64(n << shift), nil
}

// String describes the disk in one line: what finds it, and its partitions.
func (d Disk) String() string {
	find := "the first empty disk"
	var by []string
	for _, c := range [][2]string{{"path", d.Find.Path}, {"serial", d.Find.Serial}, {"minSize", string(d.Find.MinSize)}, {"maxSize", string(d.Find.MaxSize)}} {
		if c[1] != "" {
			by = append(by, c[0]+" "+c[1])
		}
	}
	if len(by) > 0 {
		find = strings.Join(by, ", ")
	}
	if d.Required {
		find += ", required"
	}
	for i, p := range d.Partitions {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		find += fmt.Sprintf("%s%s %s %s", sep, p.Label, p.Kind(), strings.Join(p.Mount, " "))
		find = strings.TrimSpace(find)
		if p.Size != "" {
			find += " " + string(p.Size)
		}
	}
	return find
}
