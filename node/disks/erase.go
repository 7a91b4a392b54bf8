package disks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover/node/gpt"
	"drover/pools"
)

// firstPartition is where the partitions of drover begin. Before it are the table and the mark.
const firstPartition = 1 << 20

// Change erases the disks of this node that have the data of another tenant, whether the config
// names them or not, and returns one line about each. It erases nothing that drover did not format
// for this node. After an error nothing may be mounted: of a disk that cannot be erased, or that
// has to be decided on. [Preparer.Prepare] follows.
//
// What it does survives the loss of power: a mark on the disk says that the erase has begun, and
// goes last.
func (p *Preparer) Change(ctx context.Context, want []pools.Disk) (done []string, err error) {
	if p.Tenant.keeps() && len(want) == 0 {
		return nil, nil
	}
	for range maxRounds {
		have, _, _ := p.await(ctx, want, true)
		var due []disk
		for _, d := range have {
			switch {
			case d.stop != nil:
				err = errors.Join(err, fmt.Errorf("/dev/%s is not used and stays as it is: %w", d.name, d.stop))
			case d.due != "":
				due = append(due, d)
				if e := d.whole(have); e != nil {
					err = errors.Join(err, fmt.Errorf("/dev/%s has the data of %s and cannot be erased: %w", d.name, d.due, e))
				}
			}
		}
		if err != nil || len(due) == 0 {
			return done, err
		}
		lines, err := p.eraseAll(ctx, due)
		done = append(done, lines...)
		if err != nil {
			return done, err
		}
	}
	return done, errors.New("disks with the data of other tenants go on coming: see what is plugged in and out")
}

// maxRounds bounds the scans that find more to erase: of disks that come late.
const maxRounds = 5

// eraseAll erases disks at the same time.
func (p *Preparer) eraseAll(ctx context.Context, due []disk) (done []string, err error) {
	p.extended = time.Now()
	did, errs := make([]string, len(due)), make([]error, len(due))
	var all sync.WaitGroup
	for i, d := range due {
		all.Go(func() {
			if did[i], errs[i] = p.erase(ctx, d); errs[i] != nil {
				errs[i] = fmt.Errorf("/dev/%s has the data of %s and cannot be erased: %w", d.name, d.due, errs[i])
			}
		})
	}
	all.Wait()
	names := map[string][]string{}
	var texts []string // alike for most disks: the detail of a step is short
	for i, text := range did {
		if text == "" {
			continue
		}
		done = append(done, "/dev/"+due[i].name+": "+text)
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], due[i].name)
	}
	if len(done) > 1 {
		for i, text := range texts {
			texts[i] = strings.Join(names[text], ", ") + ": " + text
		}
		p.erasing(strings.Join(texts, "; "))
	}
	return done, errors.Join(errs...)
}

// erase erases a disk, and returns what was done.
func (p *Preparer) erase(ctx context.Context, d disk) (string, error) {
	start := time.Now()
	if err := p.stillDue(d); err != nil {
		return "", err
	}
	device := filepath.Join(p.Dev, d.name)
	f, err := os.OpenFile(device, os.O_RDWR|unix.O_EXCL, 0) // EXCL: the kernel does not use it
	if err != nil {
		return "", err
	}
	p.erasing(fmt.Sprintf("/dev/%s: erasing the data of %s", d.name, d.due))
	e := &eraser{f: f, disk: d, chunk: cmp.Or(p.chunk, chunk), cut: p.cut, progress: p.progress(d, start)}
	did, err := e.run(ctx, p.Node, p.eraseWays())
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	_ = p.Reread(device) // the partitions go away; with an error the next use of the disk says it
	text := fmt.Sprintf("the data of %s is erased: %s (%s)", d.due, did.name, did.grade)
	p.erasing(fmt.Sprintf("/dev/%s: %s in %.1f s", d.name, text, time.Since(start).Seconds()))
	return text, nil
}

// stillDue returns an error if a disk is no longer as it was read.
func (p *Preparer) stillDue(d disk) error {
	s := p.scanner()
	now := s.read(s.describe(d.name, d.size))
	if now.used != nil {
		return now.used
	}
	if now.due != d.due || !reflect.DeepEqual(now.table, d.table) || !reflect.DeepEqual(now.mark, d.mark) {
		return errors.New("another system has changed it meanwhile")
	}
	return nil
}

// erasing reports a line.
func (p *Preparer) erasing(line string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.Erasing != nil {
		p.Erasing(line)
	}
}

// reportEvery is the time between two reports of an erase that goes on.
const reportEvery = 10 * time.Minute

// progress returns the function that an erase calls as it goes on.
func (p *Preparer) progress(d disk, start time.Time) func(done int64) {
	reported := start
	return func(done int64) {
		now := time.Now()
		p.lock.Lock()
		if p.Extend != nil {
			p.Extend(now.Sub(p.extended))
		}
		p.extended = now
		p.lock.Unlock()
		if now.Sub(reported) >= reportEvery {
			reported = now
			p.erasing(fmt.Sprintf("/dev/%s: erasing the data of %s, %d %% after %.0f min", d.name, d.due, done*100/d.size, now.Sub(start).Minutes()))
		}
	}
}

// eraser erases one disk.
type eraser struct {
	f        *os.File
	disk     disk
	progress func(done int64)
	chunk    int64                    // bytes from one report of progress to the next
	cut      func(stage string) error // for tests: the power fails
	marked   []byte                   // the block of the mark that says so
}

// write writes, and waits until it is on the disk.
func (e *eraser) write(stage string, b []byte, at int64) error {
	if e.cut != nil {
		if err := e.cut(stage); err != nil {
			return err
		}
	}
	_, err := e.f.WriteAt(b, at)
	return errors.Join(err, e.f.Sync())
}

// run erases the disk, and returns the way that it took.
func (e *eraser) run(ctx context.Context, node string, ways []way) (way, error) {
	if err := e.begin(node); err != nil {
		return way{}, err
	}
	did, err := e.empty(ctx, ways)
	if err != nil {
		return way{}, err
	}
	return did, e.finish()
}

// end returns where the copy of the table begins, behind all partitions. It stays until the
// table is gone: the disk would be nobody's otherwise, if the power fails.
func (e *eraser) end() int64 {
	sector := e.disk.sector
	return e.disk.size/sector*sector - (gpt.ArraySectors(sector)+1)*sector
}

// begin writes down that the erase has begun.
func (e *eraser) begin(node string) error {
	m := e.disk.newMark(node, Tenant{Name: e.disk.due})
	m.Erasing = true
	var err error
	if e.marked, err = m.encode(); err != nil {
		return err
	}
	return e.write("mark", e.marked, markAt)
}

// empty erases all but the table and the mark, by the first way that the disk can and that
// changes what is read.
func (e *eraser) empty(ctx context.Context, ways []way) (way, error) {
	var refused []string
	for _, w := range ways {
		before := e.sample()
		err := w.erase(ctx, e)
		if ctx.Err() != nil {
			return w, ctx.Err()
		}
		if err == nil {
			err = e.check(w, before)
		}
		if err == nil {
			return w, nil
		}
		refused = append(refused, fmt.Sprintf("%s: %v", w.name, err))
	}
	return way{}, errors.New(strings.Join(refused, "; "))
}

// finish makes the disk one that [empty] takes for empty. The mark goes last: it alone says
// that there is something to do.
func (e *eraser) finish() error {
	size := e.disk.size
	head := make([]byte, firstPartition)
	copy(head[markAt:], e.marked)
	// After a cryptographic erase there is noise where the table was: the mark is back first.
	if err := e.write("head", head, 0); err != nil {
		return err
	}
	zero := make([]byte, margin)
	parts := [][2]int64{{firstPartition, margin - firstPartition}, {size - margin, margin}}
	for _, at := range superblocks {
		if at+4096 <= size {
			parts = append(parts, [2]int64{at, 4096})
		}
	}
	for _, part := range parts {
		if err := e.write("ends", zero[:part[1]], part[0]); err != nil {
			return err
		}
	}
	if err := e.write("unmark", zero[:markBlock], markAt); err != nil {
		return err
	}
	e.forget()
	if _, err := gpt.Read(e.f, size, e.disk.sector); !errors.Is(err, gpt.ErrNone) {
		return errors.New("its partition table is still there after it was overwritten")
	}
	return empty(e.f, size)
}

// forget drops what the kernel has read of the disk.
func (e *eraser) forget() {
	_ = unix.IoctlSetInt(int(e.f.Fd()), unix.BLKFLSBUF, 0) // a file has no buffers
	_ = unix.Fadvise(int(e.f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// samples is the number of places that are read before and after an erase.
const samples = 64

// sample reads some blocks behind the table: the begin of each partition, where superblocks are,
// and others at equal distances.
func (e *eraser) sample() map[int64]string {
	e.forget()
	at := []int64{firstPartition}
	for _, p := range e.disk.table.Partitions {
		at = append(at, p.First*e.disk.sector, p.First*e.disk.sector+1024)
	}
	for i := range int64(samples) {
		at = append(at, firstPartition+(e.disk.size-firstPartition)/samples/markBlock*markBlock*i)
	}
	all := map[int64]string{}
	b := make([]byte, markBlock)
	for _, a := range at {
		if a < firstPartition || a > e.end()-markBlock {
			continue
		}
		if _, err := e.f.ReadAt(b, a); err == nil {
			all[a] = string(b)
		}
	}
	return all
}

// check returns an error if a device has not done what it says.
func (e *eraser) check(w way, before map[int64]string) error {
	for at, now := range e.sample() {
		switch bare := isZero([]byte(now)); {
		case bare:
		case w.zeroes:
			return fmt.Errorf("the device reports success, and has data at byte %d", at)
		case before[at] == now:
			return fmt.Errorf("the device reports success, and has the same data as before at byte %d", at)
		}
	}
	return nil
}
