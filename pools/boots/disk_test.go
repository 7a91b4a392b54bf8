package boots_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a clock that moves only when it is advanced.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// disk is a storage in RAM. Its fields full and lost are the errors that it returns.
type disk struct {
	mu     sync.Mutex
	values map[string][]byte
	full   error // of Enqueue
	lost   error // of wait
	once   error // of the next wait alone

	room          int // for so many changes, if calls have changed more they are errBusy; 0: any number
	puts, deletes int // that Enqueue took
}

var errBusy = errors.New("the queue is full")

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

func (d *disk) Enqueue(changes ...boots.Change) (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full != nil {
		return nil, d.full
	}
	if d.room > 0 && d.puts+d.deletes >= d.room {
		return nil, errBusy
	}
	lost := cmp.Or(d.lost, d.once)
	d.once = nil
	for _, c := range changes {
		if c.Value == nil {
			d.deletes++
		} else {
			d.puts++
		}
	}
	for _, c := range changes {
		if lost != nil {
			break
		}
		if c.Value == nil {
			delete(d.values, c.ID)
		} else {
			d.values[c.ID] = c.Value
		}
	}
	return func() error { return lost }, nil
}

// fail sets the errors of the calls that follow.
func (d *disk) fail(full, lost error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.lost = full, lost
}

// loseOne sets the error of the next write.
func (d *disk) loseOne(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.once = err
}

// allow makes room for a number of changes, of which it returns those of before.
func (d *disk) allow(room int) (puts, deletes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	puts, deletes = d.puts, d.deletes
	d.room, d.puts, d.deletes = room, 0, 0
	return puts, deletes
}

// open returns a table loaded from the disk.
func (d *disk) open(t *testing.T, c *clock) *boots.Table {
	t.Helper()
	b := boots.NewTable(d, c.Now)
	for _, id := range slices.Sorted(maps.Keys(d.values)) {
		if err := b.Load(id, d.values[id]); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// reopen flushes a table and loads it again.
func (d *disk) reopen(t *testing.T, b *boots.Table, c *clock) *boots.Table {
	t.Helper()
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	return d.open(t, c)
}

func openBoots(t *testing.T) (*boots.Table, *clock) {
	t.Helper()
	c := &clock{now: epoch}
	return newDisk().open(t, c), c
}

func mac(n int) pools.MAC { return pools.MAC{0x52, 0x54, 0, byte(n >> 16), byte(n >> 8), byte(n)} }

// plan is the plan of unknown hardware.
func plan(n int) *resolve.Plan {
	return &resolve.Plan{MAC: mac(n), Node: fmt.Sprintf("node-%s", mac(n).Hex()), Pool: "catchall", CatchAll: true, Image: "debian-12"}
}

// declared is the plan of a machine that a node declares.
func declared(n int) *resolve.Plan {
	return &resolve.Plan{MAC: mac(n), Node: fmt.Sprintf("m%d", n), Pool: "compute", Image: "debian-12"}
}
