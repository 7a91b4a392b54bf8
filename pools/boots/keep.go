package boots

import (
	"container/list"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// Bounds of a table. One packet is enough to begin a boot, and anyone can send it for
// any number of invented MACs. So machines that no node declares have few places of their
// own, and boots that progress do not compete with those that do not.
const (
	perMachine   = 10    // boots of one machine
	knownLimit   = 20000 // boots on each shelf of declared machines
	unknownLimit = 4096  // likewise, of all others
)

// shelves hold the boots of the known or of the unknown machines.
type shelves struct {
	offered fifo // boots that got no further than an offer
	leased  fifo // boots that took their address, and got no further
	fetched fifo // boots that fetched a loader or a script
}

func newShelves(limit int) shelves { return shelves{newFIFO(limit), newFIFO(limit), newFIFO(limit)} }

func (s *shelves) len() int {
	return s.offered.boots.Len() + s.leased.boots.Len() + s.fetched.boots.Len()
}

// shelf returns the shelf for a boot.
func (t *Table) shelf(b *boot) *fifo {
	s := &t.known
	if b.Record.Unknown {
		s = &t.unknown
	}
	switch {
	case b.NonceHash != nil || b.Record.pastOffer():
		return &s.fetched
	case b.leased:
		return &s.leased
	}
	return &s.offered
}

// place puts a boot on its shelf, as its newest, and drops the oldest of a full shelf. It
// does nothing for a boot that is there already.
func (t *Table) place(b *boot) {
	to := t.shelf(b)
	if b.shelf == to {
		return
	}
	if b.shelf != nil {
		b.shelf.remove(b)
	}
	b.shelf = to
	t.drop(to.add(b))
}

// fifo holds boots, the oldest first, up to a limit.
type fifo struct {
	limit int
	boots list.List // of *boot
	elems map[*boot]*list.Element
}

func newFIFO(limit int) fifo { return fifo{limit: limit, elems: map[*boot]*list.Element{}} }

// add appends b, which is not in it. It returns the boot that exceeds the limit and has
// to be dropped, or nil.
func (f *fifo) add(b *boot) *boot {
	f.elems[b] = f.boots.PushBack(b)
	if f.boots.Len() <= f.limit {
		return nil
	}
	return f.boots.Front().Value.(*boot)
}

func (f *fifo) remove(b *boot) {
	if e := f.elems[b]; e != nil {
		f.boots.Remove(e)
		delete(f.elems, b)
	}
}

// idFormat is the part of a record's ID that sorts by time; the MAC follows.
const idFormat = "20060102T150405.000000"

// The methods below require that the lock is held.

// begin starts a boot. IDs sort by time and are never used twice, even when the
// clock stands still or goes back.
func (t *Table) begin(p *resolve.Plan, now time.Time) *boot {
	at := now.UTC().Truncate(time.Microsecond)
	if !at.After(t.last) {
		at = t.last.Add(time.Microsecond)
	}
	t.last = at
	b := &boot{Record: Record{
		ID:      at.Format(idFormat) + "-" + p.MAC.Hex(),
		MAC:     p.MAC,
		Started: now.UTC(),
	}}
	b.describe(p)
	t.add(b)
	return b
}

// describe copies node, pool, cluster, image and generation of the machine from its plan.
func (b *boot) describe(p *resolve.Plan) {
	b.Record.Node, b.Record.Pool, b.Record.Unknown = p.Node, p.Pool, p.CatchAll
	b.Record.Cluster, b.Record.Image, b.Record.Generation = p.Cluster, p.Image, p.Generation
}

// add keeps a boot that is newer than all others of its machine.
func (t *Table) add(b *boot) {
	mac := b.Record.MAC
	t.added++
	b.order = t.added
	t.byMAC[mac] = append(t.byMAC[mac], b)
	if len(t.byMAC[mac]) > perMachine {
		t.drop(t.evictable(mac))
	}
	t.place(b)
}

// evictable returns the oldest boot of a machine, except one whose nonce is in force.
func (t *Table) evictable(mac pools.MAC) *boot {
	all := t.byMAC[mac]
	if all[0] == t.issuedTo(mac) || slices.Contains(t.inForce(mac, t.Now()), all[0]) {
		return all[1]
	}
	return all[0]
}

// drop removes a boot from the table. It does nothing for nil.
func (t *Table) drop(b *boot) {
	if b == nil {
		return
	}
	mac := b.Record.MAC
	kept := slices.DeleteFunc(t.byMAC[mac], func(other *boot) bool { return other == b })
	if t.byMAC[mac] = kept; len(kept) == 0 {
		delete(t.byMAC, mac)
	}
	if b.shelf != nil {
		b.shelf.remove(b)
		b.shelf = nil
	}
	delete(t.dirty, b)
	t.deleteStored(b)
}

// newest returns the boot that began last, or nil.
func (t *Table) newest(mac pools.MAC) *boot {
	if all := t.byMAC[mac]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// issuedTo returns the boot that got the newest nonce, or nil.
func (t *Table) issuedTo(mac pools.MAC) *boot {
	for _, b := range slices.Backward(t.byMAC[mac]) {
		if b.NonceHash != nil {
			return b
		}
	}
	return nil
}

// inFirmware reports whether the firmware of the machine is running: it has sent a
// netboot DISCOVER not long ago, and no key has claimed the boot.
func (b *boot) inFirmware(now time.Time) bool {
	return b.Netboot && b.KeyHash == nil && Recent(b.Discovered, now, FirmwarePhase)
}

// abandoned reports whether an unclaimed boot has made no progress for so long that a nonce
// of it is void. An image without drover-init never claims its boot, nor does a machine
// that goes on to its disk; both show the nonce in /proc/cmdline to every pod. Errors
// are no progress. Before its image a node may wait in the queue for long.
func (b *boot) abandoned(n nonce, now time.Time) bool {
	limit := FirmwarePhase
	last, _ := b.Record.Furthest()
	switch {
	case last.Step == StepKernel, last.Step == StepInitrd:
		limit = agentPhase
	case last.Step == StepQueued:
		limit = longestQueue
	case last.Step.Reporter() == ByNode:
		limit = Longest
	}
	return b.KeyHash == nil && !Recent(last.Time, now, limit) && !Recent(n.Issued, now, limit)
}

const (
	// agentPhase is the longest time from the kernel to the first report of drover-init,
	// which reboots after 15 minutes without progress.
	agentPhase = 20 * time.Minute
	// longestQueue is the longest time that a node waits for its turn to fetch its image.
	longestQueue = 24 * time.Hour
)
