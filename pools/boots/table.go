package boots

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"drover/internal/wait"
	"drover/pools"
	"drover/pools/resolve"
)

// FirmwarePhase is the longest time from a DISCOVER to the boot script, and without
// progress from then to drover-init. A machine that sends another DISCOVER later has
// been restarted.
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
// of the previous boot in force until a machine has received the next script: anyone on
// the network can send a DISCOVER with a machine's MAC, and a request by UDP with its
// address, and must not be able to interrupt the boot that is under way.
type Table struct {
	// OnStep is called after each item that a timeline gains, without a lock held.
	// It must not change the record. Set it before the first step; nil is allowed.
	OnStep func(Record, StepTime)

	// OnGivenUp is called, without a lock held, with the boot that a machine has given up: its
	// firmware has sent a DISCOVER that begins another one. Set it before the first DISCOVER; nil is
	// allowed.
	OnGivenUp func(Record)

	// Now is the clock that dates the steps.
	Now func() time.Time

	// NeedDiscover refuses nonces to machines that are not booting: a nonce is
	// issued only for [FirmwarePhase] after a netboot DISCOVER, and until a key claims
	// the boot. A pod on a running node can send HTTP from the node's address, but no
	// DISCOVER. Without this check it would get the node's config and join. Set it when
	// this server does DHCP.
	NeedDiscover bool

	// EventSecret is the secret from which [Table.EventKey] makes keys; nil: there are
	// none. Set it before the first claim.
	EventSecret []byte

	// Sharing lets other servers go on with the boots of this one; nil: it is the only server. Set
	// it before the first boot.
	Sharing *Sharing

	storage Storage

	mu      sync.Mutex
	byMAC   map[pools.MAC][]*boot // oldest first
	known   shelves               // of machines that a node declares
	unknown shelves               // of all others
	last    time.Time             // the time of the newest ID, so that IDs are unique
	added   uint64                // boots so far: the order of the newest
	dirty   map[*boot]bool        // changed since they were stored
	deleted []string              // IDs of dropped boots that the storage may have, the oldest first
}

// boot is a record with the fields that are private to the package. Its JSON is the
// stored form.
type boot struct {
	Record     Record    `json:"record"` // its Steps are never changed in place
	nonce                // the newest; its fields are stored beside the others
	Earlier    []nonce   `json:"earlier,omitempty"` // that are in force beside it, the oldest first
	KeyHash    []byte    `json:"keyHash,omitempty"`
	Netboot    bool      `json:"netboot,omitempty"`   // firmware sent a netboot DISCOVER
	Discovered time.Time `json:"discovered,omitzero"` // when it sent the last one
	Signed     bool      `json:"signed,omitempty"`    // the node signs its events
	Uptime     float64   `json:"uptime,omitempty"`    // of the last signed event
	Asked      *asked    `json:"asked,omitempty"`     // nil: no DISCOVER of it is known

	bound    bool   // KeyHash is durable
	leased   bool   // the firmware took the address that it was offered
	unsigned int    // events without a signature since the claim
	shelf    *fifo  // that holds the boot; nil: it was dropped
	order    uint64 // in the order of the IDs
	enqueued bool   // the storage may have the boot
}

// NewTable returns an empty table.
func NewTable(storage Storage, now func() time.Time) *Table {
	return &Table{
		Now: now, storage: storage,
		byMAC:   make(map[pools.MAC][]*boot),
		known:   newShelves(knownLimit),
		unknown: newShelves(unknownLimit),
		dirty:   make(map[*boot]bool),
	}
}

// Discover records the netboot DISCOVER of a machine's firmware. It begins a new
// boot, unless the newest one has not reached the kernel yet: a PXE ROM and the
// loader that it starts each send a DISCOVER.
func (t *Table) Discover(p *resolve.Plan, now time.Time) {
	t.mu.Lock()
	b := t.newest(p.MAC)
	var before *Record
	if b == nil || b.KeyHash != nil || b.Record.pastScript() || !Recent(b.Record.Started, now, FirmwarePhase) {
		if b != nil {
			before = new(b.Record)
		}
		b = t.begin(p, now)
	} else if b.Record.Unknown != p.CatchAll || b.Record.Pool != p.Pool { // a node declares it since, or no longer, or its pool is another
		b.describe(p)
		t.place(b)
	}
	b.Netboot, b.Discovered = true, now.UTC()
	if t.Sharing != nil && !b.Record.pastOffer() {
		b.Record.Elsewhere = t.Sharing.Tentative
	}
	b.ask(p.Query())
	report := t.note(b, Event{Step: StepDiscover}, now)
	t.mu.Unlock()
	if before != nil && t.OnGivenUp != nil {
		t.OnGivenUp(*before)
	}
	report()
}

// Lease notes that a machine took the address that it was offered. Its boot then competes
// no longer for a place with those of machines that sent a DISCOVER only.
func (t *Table) Lease(mac pools.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.newest(mac); b != nil && !b.leased && b.inFirmware(t.Now()) {
		b.leased = true
		t.place(b)
	}
}

// Issue makes the nonce for a boot script, 64 hex digits, and returns it once it is
// durable. A second call in the same firmware phase makes a new nonce and voids the
// first: firmware that fetches its script twice continues with the second. The error
// is [ErrNotBooting] for a machine that NeedDiscover excludes.
//
// While the storage is unavailable, the nonce is in RAM alone until it is claimed. A
// restart then voids nonce and claim together, and the machine has to boot again.
func (t *Table) Issue(p *resolve.Plan) (nonce string, err error) { return t.issueAnyway(p, false) }

// IssueUnproved is [Table.Issue] for a request whose sender may have forged its address, such
// as one by TFTP. It voids no nonce: the new one is in force beside earlier ones, until one of
// them is claimed or [Table.Prove] names it. Of many such nonces in one boot, some of the first
// and of the last stay in force.
func (t *Table) IssueUnproved(p *resolve.Plan) (nonce string, err error) {
	return t.issueAnyway(p, true)
}

// issueAnyway issues a nonce, in RAM alone if the storage is unavailable.
func (t *Table) issueAnyway(p *resolve.Plan, unproved bool) (nonce string, err error) {
	nonce, err = t.issue(p, unproved, false)
	if errors.Is(err, ErrUnavailable) {
		nonce, err = t.issue(p, unproved, true)
	}
	return nonce, err
}

func (t *Table) issue(p *resolve.Plan, unproved, unstored bool) (text string, err error) {
	now := t.Now()
	text = t.newNonce(p.MAC, now)
	hash := sha256.Sum256([]byte(text))

	t.mu.Lock()
	b := t.newest(p.MAC)
	booting := b != nil && b.inFirmware(now)
	if t.NeedDiscover && !booting {
		t.mu.Unlock()
		return "", fmt.Errorf("%s: %w", p.MAC, ErrNotBooting)
	}
	if !b.continues(unproved, now) {
		before := b
		b = t.begin(p, now)
		if booting { // it is still the same run of the firmware
			b.Netboot, b.Discovered = true, before.Discovered
		}
	}
	b.describe(p)
	b.addNonce(nonce{NonceHash: hash[:], Issued: now.UTC(), Unproved: unproved, Shared: t.Sharing != nil, unstored: unstored})
	b.KeyHash, b.bound = nil, false
	b.Signed, b.Uptime, b.unsigned = false, 0, 0
	t.place(b)
	report := t.note(b, Event{Step: StepScript}, now)
	wait := func() error { return nil }
	if unstored {
		t.dirty[b] = true
	} else {
		wait, err = t.put(b)
	}
	t.mu.Unlock()
	report()

	if err == nil {
		err = wait()
	}
	if err != nil {
		return "", fmt.Errorf("nonce of %s: %w", p.MAC, err)
	}
	return text, nil
}

// Claim binds the boot of the nonce to a public key, durably. All other nonces of the machine are
// void then. The same key may claim the boot again. It returns [ErrNonce] for a wrong nonce and
// [ErrClaimed] for another key.
func (t *Table) Claim(mac pools.MAC, nonce string, publicKey []byte) error {
	hash := sha256.Sum256(publicKey)
	t.mu.Lock()
	b, n := t.byNonce(mac, nonce, t.Now())
	switch {
	case b == nil:
		t.mu.Unlock()
		return ErrNonce
	case b.KeyHash != nil && subtle.ConstantTimeCompare(b.KeyHash, hash[:]) != 1:
		t.mu.Unlock()
		return ErrClaimed
	case b.bound:
		tell := t.here(b, b.Record.Elsewhere, false)
		b.Record.Elsewhere = false
		t.mu.Unlock()
		tell()
		return nil
	}
	changed := []*boot{b}
	if b.KeyHash == nil {
		changed = append(changed, t.settle(b, n)...)
	}
	b.KeyHash = hash[:]
	wait, err := t.put(changed...)
	t.mu.Unlock()

	if err == nil {
		err = wait()
	}
	if n.unstored && errors.Is(err, ErrUnavailable) {
		t.mu.Lock()
		for _, b := range changed {
			t.mark(b)
		}
		t.mu.Unlock()
		err = nil // nonce and claim are stored together later, or neither is
	}
	if err != nil {
		return fmt.Errorf("claim of %s: %w", mac, err)
	}
	tell := func() {}
	defer func() { tell() }() // without the lock
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Equal(b.KeyHash, hash[:]) {
		return ErrNonce // the script was issued again meanwhile
	}
	b.bound = true
	b.Record.Elsewhere = false
	tell = t.here(b, false, true)
	return nil
}

// Step adds an event to a timeline. With a nonce it is a report of the node without a
// signature, see [Table.Report]. With an empty nonce it is an observation of the server.
// A step that is repeated keeps its first time. Errors stay in order; a full timeline
// drops the oldest.
func (t *Table) Step(mac pools.MAC, nonce string, e Event) error {
	return t.Report(mac, Report{Event: e, Nonce: nonce})
}

// observed returns the boot that a step belongs to which the server observed. Steps after
// the script belong to the boot that got the script, even when a DISCOVER has begun
// another timeline since. The last steps need a claim.
func (t *Table) observed(mac pools.MAC, s Step) (*boot, error) {
	b := t.newest(mac)
	if s.Rank() > StepScript.Rank() {
		if i := t.issuedTo(mac); i != nil {
			b = i
		}
	}
	if s.Rank() > StepInitrd.Rank() {
		if all := t.inForce(mac, t.Now()); len(all) > 0 && all[len(all)-1].KeyHash != nil {
			b = all[len(all)-1]
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

// Find returns a boot of a machine by its ID; false if it is forgotten.
func (t *Table) Find(mac pools.MAC, id string) (Record, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.byMAC[mac] {
		if b.Record.ID == id {
			return b.Record, true
		}
	}
	return Record{}, false
}

// perStep is the number of boots that are looked at between two steps of a [wait.Pace].
const perStep = 100

// List returns all boots, the newest first. They share their steps with the
// table and must not be changed. It gives way, as [MarkStuck] does, at the pace of [wait.Pace].
func (t *Table) List() []Record {
	type place struct {
		order uint64
		boot  *boot
	}
	t.mu.Lock()
	sorted := make([]place, 0, t.known.len()+t.unknown.len())
	for _, boots := range t.byMAC {
		for _, b := range boots {
			sorted = append(sorted, place{b.order, b})
		}
	}
	t.mu.Unlock()
	var pace wait.Pace
	compared := 0
	slices.SortFunc(sorted, func(a, b place) int {
		if compared++; compared%(16*perStep) == 0 {
			pace.Step()
		}
		return cmp.Compare(b.order, a.order)
	})
	pace.Step()
	all := make([]Record, len(sorted))
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range sorted {
		all[i] = sorted[i].boot.Record
	}
	return all
}

// note adds an event to a timeline, which the next flush stores, and moves the boot to
// the shelf for its progress. The caller calls report, which calls OnStep, after the unlock.
func (t *Table) note(b *boot, e Event, now time.Time) (report func()) {
	before := b.Record.Error
	if e.Step.Rank() > StepOffer.Rank() && e.Step.Reporter() != ByCluster {
		b.Record.Elsewhere = false // the machine asks here
	}
	step, gained := b.Record.reach(e, now)
	if gained || b.Record.Error != before {
		t.dirty[b] = true
	}
	t.place(b)
	if !gained || t.OnStep == nil {
		return func() {}
	}
	record := b.Record
	return func() { t.OnStep(record, step) }
}
