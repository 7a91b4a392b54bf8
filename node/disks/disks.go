// Package disks finds, formats and mounts the disks of a node's config, before the node's
// own init starts: [Preparer].
//
// A disk is written to only if it is empty, or if drover has formatted it for this node: that is in
// its partition table ([mark], [newGUID]), with the name under which it is mounted. Between tenants
// of the node it is erased ([tenantMark], [Preparer.Change]). Everything else is
// reported and stays as it is, and a tmpfs takes the place of its file systems.
package disks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover/node/gpt"
	"drover/pools"
)

// disk is a disk of this machine.
type disk struct {
	name    string   // nvme0n1
	size    int64    // in bytes
	sector  int64    // in bytes
	serials []string // serial number and WWID
	wwid    string   // empty: it has none
	paths   []string // other names of the same disk
	table   gpt.Table
	owner   string // drover formatted it under this name; "": it did not
	done    bool   // the formatting ended
	foreign error  // nil: it is empty, or has an owner and belongs to this node

	mark *tenantMark // nil: it has none
	due  string      // tenant whose data has to be erased; "": none
	stop error       // ends the boot: its data may be another tenant's, and is not to be erased
	used error       // it cannot be written to; foreign has this, too
	path bool        // another name of a disk that is used by its other name
}

// mark is the begin of the names of drover's partitions: "drover:DISK/LABEL". While a disk
// is being formatted, it is markNew.
const (
	mark    = "drover:"
	markNew = "drover-new:"
)

// ignored are the beginnings of the names of block devices that are no disks of a machine.
var ignored = []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd", "mtd", "zd", "drbd", "rbd"}

// parts are in the names of hardware partitions of eMMC, which are no disks either.
var parts = []string{"boot", "rpmb", "gp"}

// scanner reads the disks of a machine from sys and dev, each of them once.
type scanner struct {
	sys, dev string
	node     string
	tenant   Tenant
	limit    time.Duration // for a disk to answer
	seen     map[string]disk
}

// scan returns the disks of the machine, by name.
func (s *scanner) scan() []disk {
	entries, _ := os.ReadDir(filepath.Join(s.sys, "block")) // without it there are none
	var all []disk
	reads := map[int]<-chan disk{} // by index in all
	ctx, cancel := context.WithTimeout(context.Background(), s.limit)
	defer cancel()
	for _, e := range entries {
		name := e.Name()
		if !isDisk(name) || s.text(name, "removable") == "1" || s.text(name, "hidden") == "1" {
			continue
		}
		sectors, err := strconv.ParseInt(s.text(name, "size"), 10, 53) // of 512 bytes, whatever the disk's are
		if err != nil || sectors == 0 {
			continue
		}
		d, ok := s.seen[name]
		if !ok || d.size != sectors*512 {
			d = s.describe(name, sectors*512)
			reads[len(all)] = s.begin(d)
		}
		all = append(all, d)
	}
	for i, read := range reads {
		all[i] = answer(ctx, read, all[i])
		s.seen[all[i].name] = all[i]
	}
	slices.SortFunc(all, func(a, b disk) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name)) // sdb before sdaa
	})
	joinPaths(all)
	return all
}

// isDisk reports whether a block device has a name of a disk.
func isDisk(name string) bool {
	return !slices.ContainsFunc(ignored, func(p string) bool { return strings.HasPrefix(name, p) }) &&
		!(strings.HasPrefix(name, "mmcblk") && slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) }))
}

// text returns the content of a file of a disk below sys; "" without one.
func (s *scanner) text(name, file string) string {
	b, _ := os.ReadFile(filepath.Join(s.sys, "block", name, file))
	return strings.TrimSpace(string(b))
}

// begin reads a disk in the background: one that hangs does not return.
func (s *scanner) begin(d disk) <-chan disk {
	done := make(chan disk, 1)
	go func() { done <- s.read(d) }()
	return done
}

// answer returns the disk that is being read, or when ctx ends d as one that is not used.
func answer(ctx context.Context, read <-chan disk, d disk) disk {
	select {
	case d = <-read:
		return d
	case <-ctx.Done():
	}
	select {
	case d = <-read: // it came while others did not
	default:
		d.foreign = errors.New("it does not answer")
	}
	return d
}

// describe returns a disk without its content.
func (s *scanner) describe(name string, size int64) disk {
	d := disk{name: name, size: size, sector: 512}
	if n, err := strconv.ParseInt(s.text(name, "queue/logical_block_size"), 10, 32); err == nil && n >= 512 && n <= 1<<16 {
		d.sector = n
	}
	for _, file := range []string{"serial", "device/serial", "wwid", "device/wwid"} {
		if v := s.text(name, file); v != "" {
			d.serials = append(d.serials, v)
			if strings.HasSuffix(file, "wwid") {
				d.wwid = v
			}
		}
	}
	// The page of SCSI has a header of 4 bytes.
	if b, err := os.ReadFile(filepath.Join(s.sys, "block", name, "device/vpd_pg80")); err == nil && len(b) > 4 {
		d.serials = append(d.serials, strings.TrimSpace(strings.Trim(string(b[4:]), "\x00")))
	}
	return d
}

// read returns a disk with its content.
func (s *scanner) read(d disk) disk {
	f, err := os.Open(filepath.Join(s.dev, d.name))
	if err != nil {
		d.foreign = err
		return d
	}
	defer f.Close()
	// Another node may have written to it since the kernel read it.
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // an error: nothing is cached
	d.used = s.inUse(d.name)
	d.foreign = errors.Join(d.used, d.content(f, s.node, s.tenant))
	return d
}

// inUse returns an error if the kernel uses a disk: for RAID, LVM, encryption.
func (s *scanner) inUse(name string) error {
	if s.text(name, "ro") == "1" {
		return errors.New("it is read-only")
	}
	holders, _ := os.ReadDir(filepath.Join(s.sys, "block", name, "holders"))
	if len(holders) > 0 {
		return fmt.Errorf("%s is on it", holders[0].Name())
	}
	return nil
}

// content finds out what is on the disk: nothing, a table of drover's, or other data.
func (d *disk) content(f io.ReaderAt, node string, t Tenant) error {
	table, err := gpt.Read(f, d.size, d.sector)
	if errors.Is(err, gpt.ErrNone) {
		if d.resumeBare(f, node) {
			return errLate
		}
		return empty(f, d.size)
	}
	if err != nil {
		return err
	}
	d.table = table
	for i, p := range table.Partitions {
		name, done := strings.CutPrefix(p.Name, mark)
		if !done {
			name, _ = strings.CutPrefix(p.Name, markNew)
		}
		owner, _, ok := strings.Cut(name, "/")
		if !ok || name == p.Name || i > 0 && (owner != d.owner || done != d.done) {
			d.owner = ""
			return fmt.Errorf("it has a partition table that is not drover's, with %q", p.Name)
		}
		d.owner, d.done = owner, done
	}
	if d.owner == "" {
		return errors.New("it has an empty partition table")
	}
	if d.mark, err = readMark(f); err != nil {
		return err
	}
	d.judge(node, t)
	switch {
	case d.due != "":
		return errLate
	case d.stop != nil:
		return d.stop
	}
	return d.foreign
}

// isEmpty reports whether the disk has no data, so that any config may have it.
func (d disk) isEmpty() bool { return d.foreign == nil && d.owner == "" }

// find returns the disk for each config, -1 for none. It is the one that drover formatted
// under the name, or the first empty one, of those that match. Disks that are asked for by
// path or serial are not for others.
func find(want []pools.Disk, have []disk) []int {
	found := slices.Repeat([]int{-1}, len(want))
	taken := map[int]bool{}
	pass := func(exact bool, good func(w pools.Disk, d disk) bool) {
		for i, w := range want {
			if found[i] >= 0 || exact != (w.Find.Path != "" || w.Find.Serial != "") {
				continue
			}
			at := slices.IndexFunc(have, func(d disk) bool { return matches(w.Find, d) && good(w, d) })
			for at >= 0 && taken[at] {
				next := slices.IndexFunc(have[at+1:], func(d disk) bool { return matches(w.Find, d) && good(w, d) })
				if next < 0 {
					at = -1
					break
				}
				at += 1 + next
			}
			if at >= 0 {
				found[i], taken[at] = at, true
			}
		}
	}
	own := func(w pools.Disk, d disk) bool { return d.foreign == nil && d.owner == w.Name }
	blank := func(_ pools.Disk, d disk) bool { return d.isEmpty() }
	other := func(pools.Disk, disk) bool { return true } // to say why it is not used
	pass(true, own)
	pass(true, blank)
	pass(true, other)
	pass(false, own)
	pass(false, blank)
	return found
}

// matches reports whether a disk is one of those that an operator chose.
func matches(f pools.FindDisk, d disk) bool {
	if f.Path != "" {
		if ok, err := filepath.Match(f.Path, "/dev/"+d.name); !ok || err != nil {
			return false
		}
	}
	if f.Serial != "" && !slices.ContainsFunc(d.serials, func(s string) bool { return strings.EqualFold(s, f.Serial) }) {
		return false
	}
	for _, limit := range []struct {
		size pools.Size
		sign int64
	}{{f.MinSize, 1}, {f.MaxSize, -1}} {
		if limit.size == "" {
			continue
		}
		if n, err := limit.size.Of(0); err != nil || (d.size-n)*limit.sign < 0 {
			return false
		}
	}
	return true
}

// missing returns the error for a disk that is not there, or that has other data.
func missing(w pools.Disk, have []disk) error {
	if len(have) == 0 {
		return errors.New("this machine has no disk, or the image has no driver for it")
	}
	var why []string
	for _, d := range have {
		switch {
		case !matches(w.Find, d):
			why = append(why, fmt.Sprintf("%s (%d GB, serial %q) does not match", d.name, d.size/1e9, strings.Join(d.serials, " ")))
		case d.foreign != nil:
			why = append(why, fmt.Sprintf("%s: %v", d.name, d.foreign))
		case d.owner != "":
			why = append(why, fmt.Sprintf("%s is disk %q", d.name, d.owner))
		default:
			why = append(why, d.name+" is taken")
		}
	}
	return fmt.Errorf("none of %d disks is it: %s", len(have), strings.Join(why, "; "))
}

// canceled reports whether ctx has ended.
func canceled(ctx context.Context) bool { return ctx.Err() != nil }
