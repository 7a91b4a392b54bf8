package boots

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"

	"drover/pools"
)

// Report is an event with its proof of origin.
type Report struct {
	Event
	Nonce string // of the node's boot; empty: the server itself observed the event

	// Signed reports whether the event is signed with a key of [Table.EventKey]. nil:
	// the event has no signature.
	Signed func(key []byte) bool
}

// The errors of [Table.Report]. The node-facing listener answers [ErrUnsigned] with 403.
var (
	// ErrUnsigned refuses an event of a claimed boot: its signature is wrong, or it has
	// none although the node signs its events, or too many came without one. Pods can
	// read the nonce in /proc/cmdline, but not the key.
	ErrUnsigned = errors.New("the event is not signed with the key of this boot")

	// ErrRepeated is for a signed event that was recorded before, or that is older than
	// one that was. It changes nothing.
	ErrRepeated = errors.New("the event was recorded before")
)

// maxUnsigned limits the events without a signature of a claimed boot, of which a
// drover-init without a key for events sends some five. A timeline has more room.
const maxUnsigned = 20

// Report adds an event to a timeline. With a nonce it is a report of the node: the nonce
// must be right, else the error is [ErrNonce], and the step must be one that nodes
// report. Once a key has claimed the boot, events must be signed, see [ErrUnsigned].
func (t *Table) Report(mac pools.MAC, r Report) error {
	if r.Step.Rank() < 0 {
		return fmt.Errorf("unknown step %q", r.Step)
	}
	if r.Nonce != "" && r.Step.Reporter() != ByNode {
		return fmt.Errorf("step %q is not reported by nodes", r.Step)
	}
	t.mu.Lock()
	b, err := t.target(mac, &r)
	if err != nil {
		t.mu.Unlock()
		return err
	}
	elsewhere, ended := b.Record.Elsewhere && r.Nonce != "", b.Record.Ended()
	report := t.note(b, r.Event, t.Now())
	ended = !ended && b.Record.Ended()
	tell := t.here(b, elsewhere, ended)
	stored := func() {}
	if ended && b.Shared {
		stored = t.storeEnd(b)
	}
	t.mu.Unlock()
	report()
	stored()
	tell()
	return nil
}

// storeEnd stores the end of a boot, of which the node reports nothing more: after a crash of this
// server the others could not tell that the machine is up. The caller waits after the unlock. What
// the storage does not take is stored by a later flush.
func (t *Table) storeEnd(b *boot) (wait func()) {
	stored, err := t.put(b)
	if err != nil {
		return func() {}
	}
	return func() {
		if stored() != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.mark(b)
		}
	}
}

// target returns the boot of an event.
func (t *Table) target(mac pools.MAC, r *Report) (*boot, error) {
	if r.Nonce == "" {
		return t.observed(mac, r.Step)
	}
	b, _ := t.byNonce(mac, r.Nonce, t.Now())
	switch {
	case b == nil:
		return nil, ErrNonce
	case b.KeyHash == nil: // the nonce is all that the node has
		return b, nil
	case r.Signed == nil && (b.Signed || b.unsigned >= maxUnsigned):
		return nil, ErrUnsigned
	case r.Signed == nil:
		b.unsigned++
		return b, nil
	}
	key := t.eventKey(b)
	switch {
	case key == nil || !r.Signed(key):
		return nil, ErrUnsigned
	case b.Signed && r.Uptime <= b.Uptime:
		return nil, ErrRepeated
	}
	b.Signed, b.Uptime = true, r.Uptime
	t.dirty[b] = true
	return b, nil
}

// Unclaimed returns nil if the nonce is that of a boot under way, which no node has claimed
// yet: [ErrNonce] or [ErrClaimed].
func (t *Table) Unclaimed(mac pools.MAC, nonce string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch b, _ := t.byNonce(mac, nonce, t.Now()); {
	case b == nil:
		return ErrNonce
	case b.KeyHash != nil:
		return ErrClaimed
	}
	return nil
}

// EventKey returns the key with which the node that claimed the boot of this nonce signs
// its events. It is nil if there is no such boot or no EventSecret. It is a secret of the
// server and of root on the node.
func (t *Table) EventKey(mac pools.MAC, nonce string) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, _ := t.byNonce(mac, nonce, t.Now())
	if b == nil || b.KeyHash == nil {
		return nil
	}
	return t.eventKey(b)
}

func (t *Table) eventKey(b *boot) []byte {
	if t.EventSecret == nil {
		return nil
	}
	h := hmac.New(sha256.New, t.EventSecret)
	if b.Shared { // other servers give this boot another ID
		fmt.Fprintf(h, "drover/1 events of nonce %x %x", b.NonceHash, b.KeyHash)
		return h.Sum(nil)
	}
	fmt.Fprintf(h, "drover/1 events %s %x", b.Record.ID, b.KeyHash)
	return h.Sum(nil)
}
