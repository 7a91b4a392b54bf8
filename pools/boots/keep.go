package boots

import (
	"container/list"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"time"

	"drover/pools"
)

// Bounds of a table.
const (
	perMachine   = 10    // boots of one machine
	issuedLimit  = 20000 // boots of all machines that got their script
	startedLimit = 8000  // boots that did not: one packet is enough to begin one
)

// fifo holds boots, the oldest first, up to a limit.
type fifo struct {
	limit int
	boots list.List // of *boot
	elems map[*boot]*list.Element
}

func newFIFO(limit int) fifo { return fifo{limit: limit, elems: map[*boot]*list.Element{}} }

// add appends b. It returns the boot that exceeds the limit and has to be dropped, or
// nil.
func (f *fifo) add(b *boot) *boot {
	if f.elems[b] != nil {
		return nil
	}
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
func (t *Table) begin(p *pools.Plan, now time.Time) *boot {
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

// describe copies node, pool, cluster and image of the machine from its plan.
func (b *boot) describe(p *pools.Plan) {
	b.Record.Node, b.Record.Pool = p.Node, p.Pool
	b.Record.Cluster, b.Record.Image = p.Cluster, p.Image
}

// add keeps a boot that is newer than all others of its machine.
func (t *Table) add(b *boot) {
	mac := b.Record.MAC
	t.byMAC[mac] = append(t.byMAC[mac], b)
	if len(t.byMAC[mac]) > perMachine {
		t.drop(t.evictable(mac))
	}
	if b.NonceHash != nil {
		t.drop(t.issued.add(b))
	} else {
		t.drop(t.started.add(b))
	}
}

// evictable returns the oldest boot of a machine, except the one whose nonce is in
// force.
func (t *Table) evictable(mac pools.MAC) *boot {
	all := t.byMAC[mac]
	if all[0] == t.issuedTo(mac) {
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
	t.issued.remove(b)
	t.started.remove(b)
	delete(t.dirty, b)
	t.dropped = append(t.dropped, Change{ID: b.Record.ID})
}

// newest returns the boot that began last, or nil.
func (t *Table) newest(mac pools.MAC) *boot {
	if all := t.byMAC[mac]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// issuedTo returns the boot whose nonce is in force, or nil.
func (t *Table) issuedTo(mac pools.MAC) *boot {
	for _, b := range slices.Backward(t.byMAC[mac]) {
		if b.NonceHash != nil {
			return b
		}
	}
	return nil
}

// byNonce returns the boot of a machine whose nonce is in force, or nil if that is
// another nonce. It takes the same time for every wrong nonce.
func (t *Table) byNonce(mac pools.MAC, nonce string) *boot {
	b := t.issuedTo(mac)
	if b == nil {
		return nil
	}
	hash := sha256.Sum256([]byte(nonce))
	if subtle.ConstantTimeCompare(b.NonceHash, hash[:]) != 1 {
		return nil
	}
	return b
}
