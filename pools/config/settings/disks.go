package settings

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
)

// maxPartitions bounds the partitions of a disk.
const maxPartitions = 32

// systemDirs are the first directories of paths that a disk may not hide: the system is
// there, and what the kernel shows.
var systemDirs = []string{"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr"}

// disks checks the disks and the zram of a tag.
func (c checking) disks(t pools.Tag) {
	names, labels, paths := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, m := range t.Mounts.Items {
		paths[path.Clean(m.Path)] = "mounts"
	}
	for i, d := range t.Disks.Items {
		at, what := index("disks", i), "disk "+strconv.Quote(d.Name)
		fail := func(remedy, format string, args ...any) {
			c.fail(at, within(what, pools.Hint(remedy, format, args...)))
		}
		if !c.checker.label.MatchString(d.Name) {
			fail("at most 12 lower-case letters, digits and '-': data", "%q is not a name for a disk", d.Name)
		}
		if names[d.Name] {
			fail("merge both, or rename one", "the name is there twice")
		}
		names[d.Name] = true
		c.find(d.Find, fail)
		if n := len(d.Partitions); n == 0 || n > maxPartitions {
			fail("partitions: [{label: containerd, mount: /var/lib/containerd}]", "it has %d partitions, not 1 to %d", n, maxPartitions)
		}
		for j, p := range d.Partitions {
			c.partition(p, j == len(d.Partitions)-1, fail)
			if labels[p.Label] {
				fail("give each its own", "label %q is there twice", p.Label)
			}
			labels[p.Label] = true
			for _, to := range p.Mount {
				if other := paths[path.Clean(to)]; other != "" {
					fail("mount one of them elsewhere", "%s is mounted by %s, too", to, other)
				}
				paths[path.Clean(to)] = what
			}
		}
	}
	if t.Zram != "" {
		_, err := t.Zram.Of(1 << 30)
		c.fail("zram", within("zram", err))
	}
}

type failFunc func(remedy, format string, args ...any)

func (c checking) find(f pools.FindDisk, fail failFunc) {
	if f.Path != "" && !c.checker.disk.MatchString(f.Path) {
		fail("write /dev/nvme0n1, or serial: for a disk whose name changes", "find: path %q is not the device node of a whole disk", f.Path)
	}
	if strings.ContainsFunc(f.Serial, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.TrimSpace(f.Serial) != f.Serial || len(f.Serial) > 128 {
		fail("as lsblk -o NAME,SERIAL prints it", "find: serial %q is not a serial number", f.Serial)
	}
	least, most := int64(0), int64(0)
	for _, s := range []struct {
		size pools.Size
		to   *int64
	}{{f.MinSize, &least}, {f.MaxSize, &most}} {
		if s.size == "" {
			continue
		}
		n, err := s.size.Of(0)
		if err != nil || n == 0 {
			fail("minSize: 100GiB", "find: %q is not the size of a disk", string(s.size))
		}
		*s.to = n
	}
	if most > 0 && least > most {
		fail("swap them", "find: minSize %s is more than maxSize %s", f.MinSize, f.MaxSize)
	}
}

func (c checking) partition(p pools.Partition, last bool, fail failFunc) {
	if !c.checker.label.MatchString(p.Label) {
		fail("at most 12 lower-case letters, digits and '-': containerd", "%q is not a label", p.Label)
	}
	if p.Size == "" && !last {
		fail("size: 8GiB; only the last takes all that is left", "partition %s has no size", p.Label)
	}
	if p.Size != "" {
		if _, err := p.Size.Of(1 << 40); err != nil {
			fail("size: 8GiB", "partition %s: %q is not a size", p.Label, string(p.Size))
		}
	}
	kind := p.Kind()
	if !slices.Contains([]pools.Filesystem{pools.Ext4, pools.XFS, pools.Btrfs, pools.Swap}, kind) {
		fail("filesystem: ext4", "partition %s: file system %q is not ext4, xfs, btrfs or swap", p.Label, string(kind))
	}
	if (kind == pools.Swap) != (len(p.Mount) == 0) {
		fail("mount: /var/lib/containerd, or filesystem: swap", "partition %s: a file system has a mount, swap has none", p.Label)
	}
	for _, to := range p.Mount {
		if absPath(to) != nil || strings.ContainsAny(to, " \t\r\n") || slices.Contains(systemDirs, strings.Split(to+"/", "/")[1]) {
			fail("mount: /var/lib/containerd", "partition %s: %q is not a place to mount at", p.Label, to)
		}
	}
	if strings.ContainsAny(p.Options, " \t\r\n") {
		fail("options: noatime,discard", "partition %s: options %q have white space", p.Label, p.Options)
	}
}
