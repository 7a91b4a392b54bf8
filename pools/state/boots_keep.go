package state

import (
	"container/list"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"drover/pools"
)

// This file holds what a Boots keeps, for how long, and how it gets into the
// file. All methods but Flush want the lock held.

// shelf holds boots in the order of their age, up to a limit.
type shelf struct {
	limit int
	order list.List // of *boot
	place map[*boot]*list.Element
}

func (s *shelf) len() int { return s.order.Len() }

// add puts r at the young end and returns the boot that it pushes out, or nil.
func (s *shelf) add(r *boot) *boot {
	if s.place == nil {
		s.place = make(map[*boot]*list.Element)
	}
	if s.place[r] != nil {
		return nil
	}
	s.place[r] = s.order.PushBack(r)
	if s.order.Len() <= s.limit {
		return nil
	}
	return s.order.Front().Value.(*boot)
}

func (s *shelf) remove(r *boot) {
	if e := s.place[r]; e != nil {
		s.order.Remove(e)
		delete(s.place, r)
	}
}

// idFormat is the part of a record's ID that sorts by time; the MAC follows.
const idFormat = "20060102T150405.000000"

func idTime(id string) (time.Time, error) {
	t, err := time.Parse(idFormat, id[:min(len(id), len(idFormat))])
	if err != nil {
		return t, fmt.Errorf("boot %q: not the ID of a boot: %w", id, err)
	}
	return t, nil
}

// begin starts a boot. IDs sort by time and are never used twice, even when
// the clock stands still or goes back.
func (b *Boots) begin(p *pools.Plan, now time.Time) *boot {
	at := now.UTC().Truncate(time.Microsecond)
	if !at.After(b.last) {
		at = b.last.Add(time.Microsecond)
	}
	b.last = at
	r := &boot{Record: pools.BootRecord{
		ID:      at.Format(idFormat) + "-" + p.MAC.Hex(),
		MAC:     p.MAC,
		Started: now.UTC(),
	}}
	r.describe(p)
	b.add(r)
	return r
}

// add shelves a boot that is newer than all others of its machine.
func (b *Boots) add(r *boot) {
	mac := r.Record.MAC
	b.byMAC[mac] = append(b.byMAC[mac], r)
	if len(b.byMAC[mac]) > bootsPerMAC {
		b.drop(b.spare(mac))
	}
	if r.NonceHash != nil {
		b.drop(b.issued.add(r))
	} else {
		b.drop(b.started.add(r))
	}
}

// spare picks the boot of a machine to forget: the oldest, but not the one
// whose nonce is in force.
func (b *Boots) spare(mac pools.MAC) *boot {
	boots := b.byMAC[mac]
	if boots[0] == b.issuedTo(mac) {
		return boots[1]
	}
	return boots[0]
}

// drop forgets a boot; nil is none.
func (b *Boots) drop(r *boot) {
	if r == nil {
		return
	}
	mac := r.Record.MAC
	kept := slices.DeleteFunc(b.byMAC[mac], func(other *boot) bool { return other == r })
	if b.byMAC[mac] = kept; len(kept) == 0 {
		delete(b.byMAC, mac)
	}
	b.issued.remove(r)
	b.started.remove(r)
	delete(b.dirty, r)
	b.gone = append(b.gone, []byte(r.Record.ID))
}

// newest returns the boot that began last, or nil.
func (b *Boots) newest(mac pools.MAC) *boot {
	if boots := b.byMAC[mac]; len(boots) > 0 {
		return boots[len(boots)-1]
	}
	return nil
}

// issuedTo returns the boot whose nonce is in force, or nil.
func (b *Boots) issuedTo(mac pools.MAC) *boot {
	for _, r := range slices.Backward(b.byMAC[mac]) {
		if r.NonceHash != nil {
			return r
		}
	}
	return nil
}

// byNonce returns the boot whose nonce is in force if nonce is that one. It
// takes the same time for every wrong nonce.
func (b *Boots) byNonce(mac pools.MAC, nonce string) *boot {
	r := b.issuedTo(mac)
	if r == nil {
		return nil
	}
	hash := sha256.Sum256([]byte(nonce))
	if subtle.ConstantTimeCompare(r.NonceHash, hash[:]) != 1 {
		return nil
	}
	return r
}

// put stores a boot as it is now.
func (b *Boots) put(r *boot) *write {
	delete(b.dirty, r)
	value, err := json.Marshal(r)
	if err != nil {
		return failed(err)
	}
	return b.store.enqueue(op{bucketBoots, []byte(r.Record.ID), value})
}

// Flush stores the steps that wait. The store calls it once a second and when
// it closes. What cannot be stored waits on.
func (b *Boots) Flush() error {
	b.mu.Lock()
	dirty, gone := b.dirty, b.gone
	b.dirty, b.gone = make(map[*boot]bool), nil
	ops := make([]op, 0, len(dirty)+len(gone))
	for _, id := range gone {
		ops = append(ops, op{bucket: bucketBoots, key: id})
	}
	var errs []error
	for r := range dirty {
		value, err := json.Marshal(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ops = append(ops, op{bucketBoots, []byte(r.Record.ID), value})
	}
	writes := b.store.enqueueChunks(ops)
	b.mu.Unlock()

	for _, w := range writes {
		errs = append(errs, w.wait())
	}
	err := errors.Join(errs...)
	if err != nil {
		b.retry(dirty, gone)
	}
	return err
}

// retry puts back what a failed flush took, unless it is gone since.
func (b *Boots) retry(dirty map[*boot]bool, gone [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = append(gone, b.gone...)
	for r := range dirty {
		if b.issued.place[r] != nil || b.started.place[r] != nil {
			b.dirty[r] = true
		}
	}
}
