package state

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"drover/pools"
)

// Bounds of what is kept.
const (
	bootsPerMAC  = 10    // boots of one machine
	bootsIssued  = 20000 // boots that got as far as their script, of all machines
	bootsStarted = 8000  // boots that did not: anyone can cause one with a single packet
)

// phaseLimit is how long the firmware phase, from DISCOVER to the boot script,
// can take; who asks again later starts anew.
const phaseLimit = 10 * time.Minute

// ErrNoBoot refuses a step of a machine of which no boot is known.
var ErrNoBoot = errors.New("no boot of this machine is known")

// Boots holds the timeline of each boot, and the nonce and the key that the
// boot is bound to.
//
// A boot is what lies between one power-on and the next. It begins with the
// DISCOVER of the firmware, or with the boot script when another server does
// DHCP. The nonce comes with the script. A DISCOVER begins a new timeline but
// leaves the nonce of the boot before in force until the next script: anyone
// on the wire can send a DISCOVER in a machine's name, and must not be able to
// cut off the boot that is under way.
type Boots struct {
	// OnStep is called after each step that a timeline gained, with the
	// record it is now part of. It must not change the record. Set it before
	// the first step.
	OnStep func(pools.BootRecord, pools.BootStep)

	// Now dates the steps.
	Now func() time.Time

	// NeedDiscover refuses nonces to machines that are not booting: one is
	// issued only after a netboot DISCOVER, and until a key claims the boot. A
	// pod on a running node can send HTTP from the node's address, and would
	// otherwise get its config and its join; it cannot send the DISCOVER. Set
	// it when this server is the one that does DHCP.
	NeedDiscover bool

	store *Store

	mu      sync.Mutex
	byMAC   map[pools.MAC][]*boot // oldest first
	issued  shelf                 // those with a nonce
	started shelf                 // those without
	last    time.Time             // the newest ID's time, so that IDs are unique
	dirty   map[*boot]bool        // not stored as they are
	gone    [][]byte              // IDs to delete from the file
}

// boot is a record with what must not leave the package. The JSON of it is
// what the file holds.
type boot struct {
	Record    pools.BootRecord `json:"record"` // its Steps are never changed in place
	NonceHash []byte           `json:"nonceHash,omitempty"`
	KeyHash   []byte           `json:"keyHash,omitempty"`
	Netboot   bool             `json:"netboot,omitempty"` // firmware asked for DHCP

	bound bool // KeyHash is durable
}

func newBoots(s *Store, now func() time.Time) *Boots {
	return &Boots{
		Now: now, store: s,
		byMAC:   make(map[pools.MAC][]*boot),
		issued:  shelf{limit: bootsIssued},
		started: shelf{limit: bootsStarted},
		dirty:   make(map[*boot]bool),
	}
}

// load reads the boots of the file, which has them in the order of their IDs.
func (b *Boots) load(bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(key, value []byte) error {
		r := &boot{}
		if err := json.Unmarshal(value, r); err != nil {
			return fmt.Errorf("boot %q: %w", key, err)
		}
		if r.Record.ID != string(key) {
			return fmt.Errorf("boot %q: it says it is %q", key, r.Record.ID)
		}
		at, err := idTime(r.Record.ID)
		if err != nil {
			return err
		}
		r.bound = r.KeyHash != nil
		b.last = at
		b.add(r)
		return nil
	})
}

// Discover notes the netboot DISCOVER of a machine's firmware. It begins a new
// boot, unless one has begun that has not reached the kernel yet: a PXE ROM
// and the loader that it starts each send their own.
func (b *Boots) Discover(p *pools.Plan, now time.Time) {
	b.mu.Lock()
	r := b.newest(p.MAC)
	if r == nil || pastScript(r) || now.Sub(r.Record.Started) > phaseLimit {
		r = b.begin(p, now)
	}
	r.Netboot = true
	record, step, gained := b.note(r, pools.Event{Step: pools.StepDiscover}, now)
	b.mu.Unlock()
	b.tell(record, step, gained)
}

// Issue makes the nonce for a boot script, 64 hex digits, and returns it once
// it is durable.
// Asked again in the same firmware phase it gives a new nonce, and the one
// before is void: firmware that fetches its script twice goes on with the
// second. It returns [pools.ErrNotBooting] as NeedDiscover says.
func (b *Boots) Issue(p *pools.Plan) (nonce string, err error) {
	random := make([]byte, 32)
	rand.Read(random) // never fails
	nonce = hex.EncodeToString(random)
	hash := sha256.Sum256([]byte(nonce))

	b.mu.Lock()
	now := b.Now()
	r := b.newest(p.MAC)
	booting := r != nil && r.Netboot && r.KeyHash == nil
	if b.NeedDiscover && !booting {
		b.mu.Unlock()
		return "", fmt.Errorf("%s: %w", p.MAC, pools.ErrNotBooting)
	}
	if r == nil || pastScript(r) || now.Sub(r.lastTime()) > phaseLimit {
		r = b.begin(p, now)
		r.Netboot = booting // the firmware is still the one that asked
	}
	r.describe(p)
	r.NonceHash, r.KeyHash, r.bound = hash[:], nil, false
	b.started.remove(r)
	b.drop(b.issued.add(r))
	record, step, gained := b.note(r, pools.Event{Step: pools.StepScript}, now)
	w := b.put(r)
	b.mu.Unlock()

	if err := w.wait(); err != nil {
		return "", fmt.Errorf("nonce of %s: %w", p.MAC, err)
	}
	b.tell(record, step, gained)
	return nonce, nil
}

// Claim binds the boot that the nonce belongs to, durably, to a public key.
// The same key may claim it again. It returns [pools.ErrNonce] for a wrong
// nonce and [pools.ErrClaimed] for another key.
func (b *Boots) Claim(mac pools.MAC, nonce string, publicKey []byte) error {
	hash := sha256.Sum256(publicKey)
	b.mu.Lock()
	r := b.byNonce(mac, nonce)
	switch {
	case r == nil:
		b.mu.Unlock()
		return pools.ErrNonce
	case r.KeyHash != nil && subtle.ConstantTimeCompare(r.KeyHash, hash[:]) != 1:
		b.mu.Unlock()
		return pools.ErrClaimed
	case r.bound:
		b.mu.Unlock()
		return nil
	}
	r.KeyHash = hash[:]
	w := b.put(r)
	b.mu.Unlock()

	if err := w.wait(); err != nil {
		return fmt.Errorf("claim of %s: %w", mac, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(r.KeyHash, hash[:]) {
		return pools.ErrNonce // the script was issued anew in between
	}
	r.bound = true
	return nil
}

// Step notes a step. With a nonce it is the node that reports it, and the
// nonce must be right, else it returns [pools.ErrNonce]; the steps that the
// server and the cluster see are not the node's to report. Without one the
// server saw it itself. The first time of each step stays; errors are kept in
// order, the oldest giving way when there are very many.
func (b *Boots) Step(mac pools.MAC, nonce string, e pools.Event) error {
	if !slices.Contains(pools.Steps, e.Step) {
		return fmt.Errorf("unknown step %q", e.Step)
	}
	if nonce != "" && !reportable(e.Step) {
		return fmt.Errorf("step %q is not a node's to report", e.Step)
	}
	b.mu.Lock()
	r, err := b.target(mac, nonce, e.Step)
	if err != nil {
		b.mu.Unlock()
		return err
	}
	record, step, gained := b.note(r, e, b.Now())
	b.mu.Unlock()
	b.tell(record, step, gained)
	return nil
}

// target finds the boot that a step belongs to. What comes after the script
// belongs to the boot that got one, although a DISCOVER may have begun another
// timeline since.
func (b *Boots) target(mac pools.MAC, nonce string, s pools.Step) (*boot, error) {
	if nonce != "" {
		if r := b.byNonce(mac, nonce); r != nil {
			return r, nil
		}
		return nil, pools.ErrNonce
	}
	r := b.newest(mac)
	if rank(s) > rank(pools.StepScript) {
		if i := b.issuedTo(mac); i != nil {
			r = i
		}
	}
	if r == nil {
		return nil, fmt.Errorf("%s: %w", mac, ErrNoBoot)
	}
	return r, nil
}

// Current returns the newest boot of a machine.
func (b *Boots) Current(mac pools.MAC) (pools.BootRecord, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.newest(mac); r != nil {
		return r.Record, true
	}
	return pools.BootRecord{}, false
}

// List returns the boots that are kept, the newest first. They share their
// steps with the store and must not be changed.
func (b *Boots) List() []pools.BootRecord {
	b.mu.Lock()
	all := make([]pools.BootRecord, 0, b.issued.len()+b.started.len())
	for _, boots := range b.byMAC {
		for _, r := range boots {
			all = append(all, r.Record)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y pools.BootRecord) int { return strings.Compare(y.ID, x.ID) })
	return all
}

// note puts an event into a timeline and leaves the rest to the write-behind.
// It returns the record as it is then, and whether it gained the step.
func (b *Boots) note(r *boot, e pools.Event, now time.Time) (pools.BootRecord, pools.BootStep, bool) {
	before := r.Record.Error
	step, gained := r.reach(e, now)
	if gained || r.Record.Error != before {
		b.dirty[r] = true
	}
	return r.Record, step, gained
}

func (b *Boots) tell(r pools.BootRecord, s pools.BootStep, gained bool) {
	if gained && b.OnStep != nil {
		b.OnStep(r, s)
	}
}
