package boots

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// MaxSkew is the difference between the clocks of two servers that boots bear.
const MaxSkew = time.Minute

// SharedLife is how long after its script a boot of another server can go on here, if that server
// cannot be asked: until then anyone who knows the nonce can claim the boot once at each server.
const SharedLife = Longest

// Sharing makes the nonces of a [Table] ones that every server with the same EventSecret can
// verify, so that another server goes on with a boot when this one is gone.
type Sharing struct {
	// Server is the ID of this server. A server never takes its own nonces for those of another
	// one: what it has voided stays void.
	Server [4]byte

	// Tell is called, without a lock, when a node has claimed a boot here, goes on with one here
	// that it claimed elsewhere, or has come to its end here. It must not wait. The other servers
	// get it by [Table.Told].
	Tell func(Claim)

	// Tentative is for servers that cannot see which of them a machine has chosen, as with
	// proxyDHCP: a boot counts as that of another server until the machine asks for a file.
	Tentative bool
}

// Claim is the claim of a boot at one server, for the others. It has no secret.
type Claim struct {
	MAC    pools.MAC `json:"mac"`
	Nonce  []byte    `json:"nonce"` // its SHA-256
	Key    []byte    `json:"key"`   // SHA-256 of the node's public key
	Issued time.Time `json:"issued"`
	End    Step      `json:"end,omitempty"` // the last step of the boot, once it has ended
}

// The layout of a nonce of a server that shares: version, Unix time in seconds, ID of the server,
// random bytes, and a MAC over these and the machine. It has 64 hex digits, as every nonce.
const (
	sharedVersion = 1
	sharedRandom  = 1 + 4 + 4
	sharedTag     = 16
	sharedSize    = 32
)

// newNonce returns the text of a new nonce.
func (t *Table) newNonce(mac pools.MAC, now time.Time) string {
	b := make([]byte, sharedSize)
	rand.Read(b) // never fails
	if t.Sharing != nil {
		b[0] = sharedVersion
		binary.BigEndian.PutUint32(b[1:], uint32(now.Unix()))
		copy(b[5:sharedRandom], t.Sharing.Server[:])
		copy(b[sharedTag:], t.tag(mac, b[:sharedTag]))
	}
	return hex.EncodeToString(b)
}

// tag returns the MAC of the begin of a nonce for a machine.
func (t *Table) tag(mac pools.MAC, begin []byte) []byte {
	h := hmac.New(sha256.New, t.EventSecret)
	h.Write([]byte("drover/1 nonce "))
	h.Write(mac[:])
	h.Write(begin)
	return h.Sum(nil)[:sharedSize-sharedTag]
}

// foreign returns when another server issued a nonce for a machine; false for any other text, and
// for a nonce that is too old.
func (t *Table) foreign(mac pools.MAC, text string, now time.Time) (issued time.Time, ok bool) {
	b, err := hex.DecodeString(text)
	if t.Sharing == nil || len(t.EventSecret) == 0 || err != nil || len(b) != sharedSize || b[0] != sharedVersion ||
		subtle.ConstantTimeCompare(b[sharedTag:], t.tag(mac, b[:sharedTag])) != 1 || [4]byte(b[5:sharedRandom]) == t.Sharing.Server {
		return issued, false
	}
	issued = time.Unix(int64(binary.BigEndian.Uint32(b[1:])), 0).UTC()
	age := now.Sub(issued)
	return issued, -MaxSkew <= age && age <= SharedLife
}

// Adopt lets the machine of a plan go on here with a boot that began with the script of another
// server. The nonce is then one of this table, beside earlier ones that are in force, until one
// of them is claimed. It does nothing for a nonce that is known, or not of another server, or
// older than the boot that is under way here.
func (t *Table) Adopt(p *resolve.Plan, text string) {
	now := t.Now()
	issued, ok := t.foreign(p.MAC, text, now)
	if !ok {
		return
	}
	hash := sha256.Sum256([]byte(text))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.withNonce(p.MAC, hash[:]) != nil || t.outdated(p.MAC, issued, now) {
		return
	}
	b := t.takenOver(p, issued, now)
	if b == nil {
		return
	}
	// Not proved: it voids nothing. Not stored: a restart voids it, and it is adopted again.
	b.addNonce(nonce{NonceHash: hash[:], Issued: issued, Unproved: true, Shared: true, unstored: true})
	t.place(b)
	t.dirty[b] = true
}

// Told takes over from another server that a node has claimed a boot there. All other nonces of
// the machine are void then, as after [Table.Claim]. It reports whether another key has claimed
// the same boot here: then both were given what is for one.
func (t *Table) Told(p *resolve.Plan, c Claim) (twice bool) {
	now := t.Now()
	if t.Sharing == nil || len(c.Nonce) != sha256.Size || len(c.Key) != sha256.Size || c.Issued.Sub(now) > MaxSkew {
		return false
	}
	tell := func() {}
	defer func() { tell() }() // without the lock
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.withNonce(p.MAC, c.Nonce)
	current, n := t.byHash(p.MAC, c.Nonce, now)
	switch {
	case b != nil && b.KeyHash != nil:
		if !slices.Equal(b.KeyHash, c.Key) {
			return true
		}
	case b != current: // the machine has begun another boot since
		return false
	case b == nil && t.outdated(p.MAC, c.Issued, now):
		return false
	case b == nil:
		if b = t.takenOver(p, c.Issued, now); b == nil {
			return false
		}
		n = nonce{NonceHash: c.Nonce, Issued: c.Issued.UTC(), Shared: true}
		fallthrough
	default:
		for _, changed := range t.settle(b, n) {
			t.dirty[changed] = true
		}
		b.KeyHash = c.Key
		b.Signed = true // a node that has claimed a shared boot has the key for its events
	}
	if !b.Record.Ended() && (c.End == StepOnline || c.End == StepReady) {
		b.Record.reach(Event{Step: c.End, Detail: "at another server"}, now)
	}
	if b.Record.Elsewhere = !b.Record.Ended(); c.End == "" {
		tell = t.here(b, false, b.Record.Ended()) // the node reported its end here
	}
	t.place(b)
	t.dirty[b] = true
	return false
}

// Left records that the firmware of a machine has taken the answer of another DHCP server. Its
// boot goes on there, unless the machine asks for something here again.
func (t *Table) Left(mac pools.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.newest(mac); t.Sharing != nil && b != nil && b.inFirmware(t.Now()) && !b.Record.Elsewhere {
		b.Record.Elsewhere = true
		t.dirty[b] = true
	}
}

// The methods below require that the lock is held.

// withNonce returns the boot that has, or had, a nonce; nil if there is none.
func (t *Table) withNonce(mac pools.MAC, hash []byte) *boot {
	for _, b := range slices.Backward(t.byMAC[mac]) {
		if slices.ContainsFunc(b.nonces(), func(n nonce) bool { return slices.Equal(n.NonceHash, hash) }) {
			return b
		}
	}
	return nil
}

// takenOver returns the boot in which a machine goes on with a nonce of another server: the newest
// one if it began here as well, else a new one. It is nil if the machine has begun another boot
// since.
func (t *Table) takenOver(p *resolve.Plan, issued, now time.Time) *boot {
	b := t.newest(p.MAC)
	switch {
	case b == nil || b.KeyHash != nil || b.Record.Started.Before(issued.Add(-FirmwarePhase-MaxSkew)):
		return t.begin(p, now)
	case b.Record.Started.After(issued.Add(MaxSkew)):
		return nil
	}
	b.describe(p)
	return b
}

// outdated reports whether the boot under way of a machine has a later script than a nonce of
// another server.
func (t *Table) outdated(mac pools.MAC, issued, now time.Time) bool {
	all := t.inForce(mac, now)
	if len(all) == 0 {
		return false
	}
	b := all[len(all)-1]
	return (b.KeyHash != nil || b.proves()) && b.Issued.After(issued.Add(MaxSkew))
}

// here returns a function that tells the other servers of a claimed boot that is served here, if
// there is news: it was elsewhere before, or it is new or has ended. The caller calls it after the
// unlock.
func (t *Table) here(b *boot, elsewhere, news bool) (tell func()) {
	if t.Sharing == nil || t.Sharing.Tell == nil || !b.Shared || b.KeyHash == nil || !elsewhere && !news {
		return func() {}
	}
	c := b.claim()
	return func() { t.Sharing.Tell(c) }
}

// claim returns the claim of a claimed boot.
func (b *boot) claim() Claim {
	c := Claim{MAC: b.Record.MAC, Nonce: b.NonceHash, Key: b.KeyHash, Issued: b.Issued}
	if b.Record.Ended() {
		last, _ := b.Record.Furthest()
		c.End = last.Step
	}
	return c
}

// Claims returns the claims that a server needs to know that has just started: it may have missed
// them, or lost what it saw last.
func (t *Table) Claims() (all []Claim) {
	now := t.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for mac := range t.byMAC {
		b := t.issuedTo(mac)
		if b != nil && b.Shared && b.KeyHash != nil && !b.Record.Elsewhere && Recent(b.Issued, now, SharedLife) {
			all = append(all, b.claim())
		}
	}
	return all
}
