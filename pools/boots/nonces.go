package boots

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"time"

	"drover/pools"
)

// maxEarlier limits the nonces of a boot beside its newest.
const maxEarlier = 4

// nonce is a nonce of a boot. It is void once a key has claimed the boot with another one, or
// when the boot is abandoned.
type nonce struct {
	NonceHash []byte    `json:"nonceHash,omitempty"`
	Issued    time.Time `json:"issued,omitzero"`    // when the machine got it
	Unproved  bool      `json:"unproved,omitempty"` // nobody may have received it, see [Table.IssueUnproved]
	Shared    bool      `json:"shared,omitempty"`   // other servers can verify it, see [Sharing]

	unstored bool // it was issued while the storage was unavailable
}

// proves reports whether the client that asked for a nonce has shown that it receives what is
// sent to its address.
func (n nonce) proves() bool { return n.NonceHash != nil && !n.Unproved }

// The methods below require that the lock is held.

// nonces returns all nonces of a boot, the oldest first.
func (b *boot) nonces() []nonce {
	if b.NonceHash == nil {
		return nil
	}
	return append(slices.Clone(b.Earlier), b.nonce)
}

// setNonces replaces the nonces of a boot.
func (b *boot) setNonces(all []nonce) {
	b.nonce, b.Earlier = nonce{}, nil
	if n := len(all); n > 0 {
		b.nonce, b.Earlier = all[n-1], all[:n-1:n-1]
	}
}

// addNonce adds the newest nonce of a boot. A proved one voids all others, since firmware that
// fetches its script twice continues with the second. Of many unproved ones, the proved one and
// the first or the first two stay, which later requests in the machine's name cannot push out,
// and the last three, of which the machine may have one.
func (b *boot) addNonce(n nonce) {
	if n.proves() {
		b.setNonces([]nonce{n})
		return
	}
	all := append(b.nonces(), n)
	if len(all) > maxEarlier+1 {
		all = slices.Delete(all, 2, 3)
	}
	b.setNonces(all)
}

// continues reports whether a script that is issued now belongs to boot b. An unproved request
// alone does not end a boot that is under way.
func (b *boot) continues(unproved bool, now time.Time) bool {
	switch {
	case b == nil, unproved && b.KeyHash != nil:
		return false
	case unproved && b.NonceHash != nil && !b.abandoned(b.nonce, now):
		return true
	}
	return !b.Record.pastScript() && Recent(b.Record.lastTime(), now, FirmwarePhase)
}

// inForce returns the boots of a machine whose nonces are in force, the newest first. The last of
// them is the one that a key has claimed, or that has a proved nonce, if any: it voids the boots
// before it.
func (t *Table) inForce(mac pools.MAC, now time.Time) (all []*boot) {
	for _, b := range slices.Backward(t.byMAC[mac]) {
		nonces := b.nonces()
		if slices.ContainsFunc(nonces, func(n nonce) bool { return !b.abandoned(n, now) }) {
			all = append(all, b)
		}
		if b.KeyHash != nil || slices.ContainsFunc(nonces, nonce.proves) {
			break
		}
	}
	return all
}

// byNonce returns the boot of a machine whose nonce is in force, and that nonce; nil if there is
// none. It takes the same time for every wrong nonce.
func (t *Table) byNonce(mac pools.MAC, text string, now time.Time) (found *boot, n nonce) {
	hash := sha256.Sum256([]byte(text))
	return t.byHash(mac, hash[:], now)
}

// byHash is byNonce for the hash of a nonce.
func (t *Table) byHash(mac pools.MAC, hash []byte, now time.Time) (found *boot, n nonce) {
	for _, b := range t.inForce(mac, now) {
		for _, other := range b.nonces() {
			if subtle.ConstantTimeCompare(other.NonceHash, hash) == 1 && !b.abandoned(other, now) {
				found, n = b, other
			}
		}
	}
	return found, n
}

// settle makes n, a nonce of boot b, the only one of its machine. It returns the other boots that
// have lost theirs.
func (t *Table) settle(b *boot, n nonce) (changed []*boot) {
	n.Unproved, n.unstored = false, false
	b.setNonces([]nonce{n})
	for _, newer := range slices.Backward(t.byMAC[b.Record.MAC]) {
		if newer == b {
			break
		}
		if newer.NonceHash != nil {
			newer.setNonces(nil)
			t.place(newer)
			changed = append(changed, newer)
		}
	}
	return changed
}

// Prove records that the client of a nonce from [Table.IssueUnproved] has received it. That voids
// the nonces that were issued before. It does nothing for a nonce that is not in force. It is
// stored by the next flush.
func (t *Table) Prove(mac pools.MAC, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, n := t.byNonce(mac, text, t.Now())
	if b == nil || n.proves() {
		return
	}
	all := b.nonces()
	all = all[slices.IndexFunc(all, func(other nonce) bool { return slices.Equal(other.NonceHash, n.NonceHash) }):]
	all[0].Unproved = false
	b.setNonces(all)
	t.dirty[b] = true
}
