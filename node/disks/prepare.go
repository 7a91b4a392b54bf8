package disks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/wait"
	"drover/node/gpt"
	"drover/pools"
)

// System is the part of the system that a test replaces.
type System interface {
	// Mkfs makes a file system or a swap area on a device.
	Mkfs(ctx context.Context, kind pools.Filesystem, label, device string) error
	// Reread makes the kernel read the partition table of a disk.
	Reread(device string) error
	// Mount mounts a file system: of a device, "tmpfs", or "bind" of a directory.
	Mount(kind, source, target, options string) error
	// SwapOn starts to swap to a device.
	SwapOn(device string, priority int) error
}

// Preparer prepares the disks of a node.
type Preparer struct {
	System
	Node     string // name of the node; the disks that it formats belong to it
	Tenant   Tenant // whom the node boots for
	Sys, Dev string // /sys and /dev
	Root     string // directory below which the file systems are mounted: /
	Shared   string // directory for the file systems that several paths share, not below Root
	// Plug loads the modules of new devices. It is called while a disk is missing.
	Plug func()
	// Say reports progress.
	Say func(format string, args ...any)
	// Tmpfs are the mount options of a tmpfs in place of a disk.
	Tmpfs string
	// Wait is the limit for all disks together, 0: 7 s, and after it some scans more while
	// new disks come. Interval is between two scans, 0: 250 ms.
	Wait, Interval time.Duration
	// Answer is the limit for a disk to answer when it is read, 0: 30 s. Some take long to
	// spin up, and a broken one never answers.
	Answer time.Duration
	// Erasing gets the lines of [Preparer.Change], and Extend the time that passes while disks are
	// erased. Both may be nil, and are not called at the same time.
	Erasing func(line string)
	Extend  func(by time.Duration)

	deadline time.Time // of the waits for disks, of all scans together
	lock     sync.Mutex
	extended time.Time

	// For tests: the ways to erase a disk, the bytes between two reports, and the loss of power
	// before a write, which is an error.
	ways  []way
	chunk int64
	cut   func(stage string) error
}

// Prepare formats and mounts the disks, and returns one line about each that is in use, and
// a warning for each in whose place is a tmpfs. An error is of a disk that is required.
func (p *Preparer) Prepare(ctx context.Context, want []pools.Disk) (done []string, warnings []error, err error) {
	if len(want) == 0 {
		return nil, nil, nil
	}
	have, found, quiet := p.await(ctx, want, false)
	for i, w := range want {
		var err error
		text := ""
		switch at := found[i]; {
		case at < 0:
			err = missing(w, have)
		case !quiet && have[at].isEmpty():
			err = fmt.Errorf("/dev/%s is empty and not formatted: other disks were still coming, and the one of an earlier boot may be among them", have[at].name)
		default:
			text, err = p.use(ctx, w, have[at])
		}
		if err == nil {
			done = append(done, text)
			if err := have[found[i]].singlePath(); err != nil {
				warnings = append(warnings, fmt.Errorf("disk %q: %w", w.Name, err))
			}
			continue
		}
		err = fmt.Errorf("disk %q: %w", w.Name, err)
		if w.Required {
			return done, warnings, fmt.Errorf("%w; the node needs it (required: true)", err)
		}
		paths, mountErr := p.substitute(w)
		if mountErr != nil {
			return done, warnings, errors.Join(err, mountErr)
		}
		if len(paths) > 0 {
			err = fmt.Errorf("%w; going on without: a tmpfs is at %s", err, strings.Join(paths, ", "))
		}
		warnings = append(warnings, err)
	}
	return done, warnings, nil
}

// settled is the number of scans without a new disk after which an empty disk may be
// formatted: the one that was formatted in an earlier boot may come a bit later.
const settled = 6

// late is the number of scans after the limit, for disks that go on coming.
const late = 4 * settled

// await waits until all disks are there, or for the limit, and then for no more to come. Empty
// disks may be formatted if quiet. With every it waits for disks that the config does not name, too:
// for those of controllers that find them in the background.
func (p *Preparer) await(ctx context.Context, want []pools.Disk, every bool) (have []disk, found []int, quiet bool) {
	if p.deadline.IsZero() {
		p.deadline = time.Now().Add(cmp.Or(p.Wait, 7*time.Second))
	}
	s := p.scanner()
	left := late
	for same := 0; ; same++ {
		p.Plug()
		before := have
		have = s.scan()
		if !reflect.DeepEqual(have, before) {
			same = 0
		}
		found = find(want, have)
		over := !time.Now().Before(p.deadline)
		if over {
			left--
		}
		missing, fresh := false, every && isLate(p.Sys)
		for _, at := range found {
			missing = missing || at < 0
			fresh = fresh || at >= 0 && !have[at].done
		}
		quiet = same >= settled
		if (over || !missing) && (quiet || !fresh || left <= 0) || canceled(ctx) {
			return have, found, quiet
		}
		_ = wait.Sleep(ctx, p.interval()) // the end of ctx is seen above
	}
}

func (p *Preparer) interval() time.Duration { return cmp.Or(p.Interval, 250*time.Millisecond) }

func (p *Preparer) scanner() *scanner {
	return &scanner{sys: p.Sys, dev: p.Dev, node: p.Node, tenant: p.Tenant, limit: cmp.Or(p.Answer, 30*time.Second), seen: map[string]disk{}}
}

// use formats a disk, unless drover has done that, and mounts its file systems.
func (p *Preparer) use(ctx context.Context, w pools.Disk, d disk) (string, error) {
	if d.foreign == nil && d.owner != "" && d.owner != w.Name {
		d.foreign = fmt.Errorf("drover formatted it as disk %q", d.owner)
	}
	if d.foreign != nil {
		return "", fmt.Errorf("/dev/%s is not used and stays as it is: %w (to give it to drover: blkdiscard or wipe it)", d.name, d.foreign)
	}
	verb := "mounted"
	if !d.done {
		verb = "formatted"
		start := time.Now()
		if err := p.format(ctx, w, &d); err != nil {
			return "", fmt.Errorf("format /dev/%s: %w", d.name, err)
		}
		p.Say("%s: /dev/%s was empty, formatted in %.1f s", w.Name, d.name, time.Since(start).Seconds())
	} else if err := p.mark(&d); err != nil {
		return "", fmt.Errorf("mark the tenant on /dev/%s: %w", d.name, err)
	}
	var devices []string
	for _, part := range w.Partitions {
		device, err := p.partition(d, w.Name, part.Label)
		if err != nil {
			return "", err
		}
		devices = append(devices, device)
	}
	for i, part := range w.Partitions {
		if err := p.mount(w, part, devices[i]); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s is /dev/%s, %s", w.Name, d.name, verb), nil
}

// format writes the partition table and makes the file systems. The names in the table say
// that they are not ready until they are: the next boot begins anew after a power failure.
func (p *Preparer) format(ctx context.Context, w pools.Disk, d *disk) error {
	var want []gpt.Want
	for _, part := range w.Partitions {
		g := gpt.Want{Name: markNew + w.Name + "/" + part.Label, Type: gpt.Linux}
		if part.Kind() == pools.Swap {
			g.Type = gpt.Swap
		}
		if part.Size != "" {
			n, err := part.Size.Of(d.size)
			if err != nil {
				return err
			}
			g.Size = n
		}
		want = append(want, g)
	}
	table, err := gpt.New(d.size, d.sector, want)
	if err != nil {
		return err
	}
	table.Disk = newGUID(p.Node)
	device := filepath.Join(p.Dev, d.name)
	if err := p.replaceTable(device, d, table); err != nil {
		return err
	}
	if err := p.Reread(device); err != nil {
		return fmt.Errorf("the kernel does not read its new partition table: %w", err)
	}
	// Of several nodes that found the same disk empty, the last to write its table has it.
	if err := wait.Sleep(ctx, 4*p.interval()); err != nil {
		return err
	}
	if err := p.unchanged(*d); err != nil {
		return err
	}
	if err := p.mark(d); err != nil {
		return err
	}
	for i, part := range w.Partitions {
		device := p.device(d.name, i)
		if err := p.appear(ctx, device); err != nil {
			return err
		}
		if err := p.Mkfs(ctx, part.Kind(), part.Label, device); err != nil {
			return err
		}
	}
	table.Partitions = slices.Clone(table.Partitions)
	for i, part := range w.Partitions {
		table.Partitions[i].Name = mark + w.Name + "/" + part.Label
	}
	return p.replaceTable(device, d, table)
}

// unchanged returns an error if a disk is no longer as it was read or written: another node can
// have the same disk, and format it at the same time.
func (p *Preparer) unchanged(d disk) error {
	s := p.scanner()
	now := s.read(s.describe(d.name, d.size))
	if now.foreign != nil {
		return fmt.Errorf("another system has taken it meanwhile: %w", now.foreign)
	}
	if !reflect.DeepEqual(now.table, d.table) {
		return errors.New("another system has changed its partition table meanwhile")
	}
	return nil
}

// replaceTable writes the table of a disk that is unchanged.
func (p *Preparer) replaceTable(device string, d *disk, table gpt.Table) error {
	if err := p.unchanged(*d); err != nil {
		return err
	}
	f, err := os.OpenFile(device, os.O_WRONLY|unix.O_EXCL, 0) // EXCL: the kernel does not use it
	if err != nil {
		return err
	}
	d.table = table
	return errors.Join(table.Write(f, d.size, d.sector), f.Sync(), f.Close())
}

// mark writes the mark of the tenant, unless the disk has it.
func (p *Preparer) mark(d *disk) error {
	m := d.newMark(p.Node, p.Tenant)
	if p.Tenant.Name == "" || d.mark != nil && *d.mark == m {
		return nil
	}
	b, err := m.encode()
	if err != nil {
		return err
	}
	if err := p.unchanged(*d); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(p.Dev, d.name), os.O_WRONLY|unix.O_EXCL, 0)
	if err != nil {
		return err
	}
	d.mark = &m
	_, err = f.WriteAt(b, markAt)
	return errors.Join(err, f.Sync(), f.Close())
}

// device returns the device node of a partition, from 0.
func (p *Preparer) device(disk string, i int) string {
	sep := ""
	if last := disk[len(disk)-1]; last >= '0' && last <= '9' {
		sep = "p" // nvme0n1p1, sda1
	}
	return filepath.Join(p.Dev, fmt.Sprintf("%s%s%d", disk, sep, i+1))
}

// appear waits for a device node of a partition.
func (p *Preparer) appear(ctx context.Context, device string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		_, err := os.Stat(device)
		if err == nil || canceled(ctx) {
			return err
		}
		_ = wait.Sleep(ctx, 20*time.Millisecond) // the end of ctx is seen above
	}
}

// partition returns the device of a partition of drover's.
func (p *Preparer) partition(d disk, name, label string) (string, error) {
	var labels []string
	for i, part := range d.table.Partitions {
		_, l, _ := strings.Cut(part.Name, "/")
		if l == label {
			return p.device(d.name, i), nil
		}
		labels = append(labels, l)
	}
	return "", fmt.Errorf("/dev/%s was formatted with the partitions %s, and has no %q: name the disk otherwise than %q, or wipe it", d.name, strings.Join(labels, ", "), label, name)
}

// mount mounts the file system of a partition, or starts to swap to it.
func (p *Preparer) mount(w pools.Disk, part pools.Partition, device string) error {
	if part.Kind() == pools.Swap {
		if err := p.SwapOn(device, -1); err != nil {
			return fmt.Errorf("swap on %s: %w", device, err)
		}
		return nil
	}
	at := func(path string) string { return filepath.Join(p.Root, path) }
	if len(part.Mount) == 1 {
		return p.Mount(string(part.Kind()), device, at(part.Mount[0]), part.Options)
	}
	shared := filepath.Join(p.Shared, w.Name, part.Label)
	if err := p.Mount(string(part.Kind()), device, shared, part.Options); err != nil {
		return err
	}
	for _, path := range part.Mount {
		dir := filepath.Join(shared, strings.ReplaceAll(strings.Trim(path, "/"), "/", "-"))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := p.Mount("bind", dir, at(path), ""); err != nil {
			return err
		}
	}
	return nil
}

// substitute mounts a tmpfs at each path of a disk, and returns the paths.
func (p *Preparer) substitute(w pools.Disk) (paths []string, err error) {
	for _, part := range w.Partitions {
		for _, path := range part.Mount {
			paths = append(paths, path)
			if err := p.Mount("tmpfs", "drover-tmpfs", filepath.Join(p.Root, path), p.Tmpfs); err != nil {
				return nil, err
			}
		}
	}
	return paths, nil
}
