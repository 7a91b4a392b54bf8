package boots

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"drover/pools"
)

// FirmwarePhase is the longest time from a DISCOVER to the boot script. A
// machine that sends another DISCOVER later has been restarted.
const FirmwarePhase = 10 * time.Minute

// Errors of a [Table].
var (
	// ErrNoBoot refuses a step of a machine without a known boot.
	ErrNoBoot = errors.New("no boot of this machine is known")

	// ErrNonce and ErrClaimed refuse a node's request. The node-facing listener
	// answers both with 403.
	ErrNonce   = errors.New("nonce is not the one of this machine's current boot")
	ErrClaimed = errors.New("this boot already belongs to another key")

	// ErrNotBooting refuses a boot script to a machine whose firmware has sent no
	// DISCOVER since its last boot: the client is not a boot program, but a program
	// that runs on the machine or behind its address.
	ErrNotBooting = errors.New("the firmware of this machine has sent no DISCOVER since its last boot")
)

// Table holds the timeline of each boot, and the nonce and the key that the
// boot is bound to. It is safe for concurrent use.
//
// A boot lasts from one power-on to the next. It begins with the DISCOVER of the
// firmware, or with the boot script when another server does DHCP. The nonce
// comes with the script. A DISCOVER begins a new timeline but leaves the nonce
// of the previous boot in force until the next script: anyone on the network can
// send a DISCOVER with a machine's MAC, and must not be able to interrupt the boot
// that is under way.
type Table struct {
	// OnStep is called after each item that a timeline gains, without a lock held.
	// It must not change the record. Set it before the first step; nil is allowed.
	OnStep func(Record, StepTime)

	// Now is the clock that dates the steps.
	Now func() time.Time

	// NeedDiscover refuses nonces to machines that are not booting: a nonce is
	// issued only after a netboot DISCOVER, and until a key claims the boot. A pod
	// on a running node can send HTTP from the node's address, but no DISCOVER.
	// Without this check it would get the node's config and join. Set it when this
	// server does DHCP.
	NeedDiscover bool

	storage Storage

	mu      sync.Mutex
	byMAC   map[pools.MAC][]*boot // oldest first
	issued  fifo                  // boots with a nonce
	started fifo                  // boots without a nonce
	last    time.Time             // the time of the newest ID, so that IDs are unique
	dirty   map[*boot]bool        // changed since they were stored
	dropped []Change              // to delete from the storage
}

// boot is a record with the fields that are private to the package. Its JSON is the
// stored form.
type boot struct {
	Record    Record `json:"record"` // its Steps are never changed in place
	NonceHash []byte `json:"nonceHash,omitempty"`
	KeyHash   []byte `json:"keyHash,omitempty"`
	Netboot   bool   `json:"netboot,omitempty"` // firmware sent a netboot DISCOVER

	bound bool // KeyHash is durable
}

// NewTable returns an empty table.
func NewTable(storage Storage, now func() time.Time) *Table {
	return &Table{
		Now: now, storage: storage,
		byMAC:   make(map[pools.MAC][]*boot),
		issued:  newFIFO(issuedLimit),
		started: newFIFO(startedLimit),
		dirty:   make(map[*boot]bool),
	}
}

// Discover records the netboot DISCOVER of a machine's firmware. It begins a new
// boot, unless the newest one has not reached the kernel yet: a PXE ROM and the
// loader that it starts each send a DISCOVER.
func (t *Table) Discover(p *pools.Plan, now time.Time) {
	t.mu.Lock()
	b := t.newest(p.MAC)
	if b == nil || b.Record.pastScript() || now.Sub(b.Record.Started) > FirmwarePhase {
		b = t.begin(p, now)
	}
	b.Netboot = true
	report := t.note(b, Event{Step: StepDiscover}, now)
	t.mu.Unlock()
	report()
}

// Issue makes the nonce for a boot script, 64 hex digits, and returns it once it is
// durable. A second call in the same firmware phase makes a new nonce and voids the
// first: firmware that fetches its script twice continues with the second. The error
// is [ErrNotBooting] for a machine that NeedDiscover excludes.
func (t *Table) Issue(p *pools.Plan) (nonce string, err error) {
	random := make([]byte, 32)
	rand.Read(random) // never fails
	nonce = hex.EncodeToString(random)
	hash := sha256.Sum256([]byte(nonce))

	t.mu.Lock()
	now := t.Now()
	b := t.newest(p.MAC)
	booting := b != nil && b.Netboot && b.KeyHash == nil
	if t.NeedDiscover && !booting {
		t.mu.Unlock()
		return "", fmt.Errorf("%s: %w", p.MAC, ErrNotBooting)
	}
	if b == nil || b.Record.pastScript() || now.Sub(b.Record.lastTime()) > FirmwarePhase {
		b = t.begin(p, now)
		b.Netboot = booting // it is still the same run of the firmware
	}
	b.describe(p)
	b.NonceHash, b.KeyHash, b.bound = hash[:], nil, false
	t.started.remove(b)
	t.drop(t.issued.add(b))
	report := t.note(b, Event{Step: StepScript}, now)
	wait, err := t.put(b)
	t.mu.Unlock()

	if err == nil {
		err = wait()
	}
	if err != nil {
		return "", fmt.Errorf("nonce of %s: %w", p.MAC, err)
	}
	report()
	return nonce, nil
}

// Claim binds the boot of the nonce to a public key, durably. The same key may claim
// the boot again. It returns [ErrNonce] for a wrong nonce and
// [ErrClaimed] for another key.
func (t *Table) Claim(mac pools.MAC, nonce string, publicKey []byte) error {
	hash := sha256.Sum256(publicKey)
	t.mu.Lock()
	b := t.byNonce(mac, nonce)
	switch {
	case b == nil:
		t.mu.Unlock()
		return ErrNonce
	case b.KeyHash != nil && subtle.ConstantTimeCompare(b.KeyHash, hash[:]) != 1:
		t.mu.Unlock()
		return ErrClaimed
	case b.bound:
		t.mu.Unlock()
		return nil
	}
	b.KeyHash = hash[:]
	wait, err := t.put(b)
	t.mu.Unlock()

	if err == nil {
		err = wait()
	}
	if err != nil {
		return fmt.Errorf("claim of %s: %w", mac, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Equal(b.KeyHash, hash[:]) {
		return ErrNonce // the script was issued again meanwhile
	}
	b.bound = true
	return nil
}

// Step adds an event to a timeline. With a nonce it is a report of the node: the
// nonce must be right, else the error is [ErrNonce], and the step must be one that
// nodes report. With an empty nonce it is an observation of the server. A step that
// is repeated keeps its first time. Errors stay in order; a full timeline drops the
// oldest.
func (t *Table) Step(mac pools.MAC, nonce string, e Event) error {
	if e.Step.Rank() < 0 {
		return fmt.Errorf("unknown step %q", e.Step)
	}
	if nonce != "" && e.Step.Reporter() != ByNode {
		return fmt.Errorf("step %q is not reported by nodes", e.Step)
	}
	t.mu.Lock()
	b, err := t.target(mac, nonce, e.Step)
	if err != nil {
		t.mu.Unlock()
		return err
	}
	report := t.note(b, e, t.Now())
	t.mu.Unlock()
	report()
	return nil
}

// target returns the boot that a step belongs to. Steps after the script belong to
// the boot that got the script, even when a DISCOVER has begun another timeline
// since.
func (t *Table) target(mac pools.MAC, nonce string, s Step) (*boot, error) {
	if nonce != "" {
		if b := t.byNonce(mac, nonce); b != nil {
			return b, nil
		}
		return nil, ErrNonce
	}
	b := t.newest(mac)
	if s.Rank() > StepScript.Rank() {
		if i := t.issuedTo(mac); i != nil {
			b = i
		}
	}
	if b == nil {
		return nil, fmt.Errorf("%s: %w", mac, ErrNoBoot)
	}
	return b, nil
}

// Current returns the newest boot of a machine.
func (t *Table) Current(mac pools.MAC) (Record, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.newest(mac); b != nil {
		return b.Record, true
	}
	return Record{}, false
}

// List returns all boots, the newest first. They share their steps with the
// table and must not be changed.
func (t *Table) List() []Record {
	t.mu.Lock()
	all := make([]Record, 0, t.issued.boots.Len()+t.started.boots.Len())
	for _, boots := range t.byMAC {
		for _, b := range boots {
			all = append(all, b.Record)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(x, y Record) int { return strings.Compare(y.ID, x.ID) })
	return all
}

// note adds an event to a timeline, which the next flush stores. The caller calls
// report, which calls OnStep, after the unlock.
func (t *Table) note(b *boot, e Event, now time.Time) (report func()) {
	before := b.Record.Error
	step, gained := b.Record.reach(e, now)
	if gained || b.Record.Error != before {
		t.dirty[b] = true
	}
	if !gained || t.OnStep == nil {
		return func() {}
	}
	record := b.Record
	return func() { t.OnStep(record, step) }
}
