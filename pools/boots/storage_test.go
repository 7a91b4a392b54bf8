package boots_test

import (
	"errors"
	"fmt"
	"testing"

	"drover/pools/boots"
)

// A full queue is an error for the caller, at once. A boot that could not be stored
// is stored by the next flush.
func TestStorageIsFull(t *testing.T) {
	full := errors.New("the queue is full")
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	b.Discover(plan(1), c.Now())
	nonce := issue(t, b)

	d.fail(full, nil)
	if err := b.Claim(mac(1), nonce, []byte("key")); !errors.Is(err, full) {
		t.Errorf("claim: got %v, want %v", err, full)
	}
	if _, err := b.Issue(plan(2)); !errors.Is(err, full) {
		t.Errorf("issue: got %v, want %v", err, full)
	}
	if err := b.Flush(); !errors.Is(err, full) {
		t.Errorf("flush: got %v, want %v", err, full)
	}

	d.fail(nil, nil)
	if err := b.Claim(mac(1), nonce, []byte("another")); !errors.Is(err, boots.ErrClaimed) {
		t.Errorf("another key after the failure: got %v, want ErrClaimed", err)
	}
	b = d.reopen(t, b, c)
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Errorf("the same key after a restart: %v", err)
	}
	if len(b.List()) != 2 {
		t.Errorf("got %d boots after a restart, want 2", len(b.List()))
	}
}

// A lost write is an error for the caller that waits for it. The same key can claim
// the boot again.
func TestStorageLosesAWrite(t *testing.T) {
	lost := errors.New("no space left on device")
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	nonce := issue(t, b)
	d.fail(nil, lost)
	if err := b.Claim(mac(1), nonce, []byte("key")); !errors.Is(err, lost) {
		t.Errorf("got %v, want %v", err, lost)
	}
	d.fail(nil, nil)
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := d.reopen(t, b, c).Claim(mac(1), nonce, []byte("another")); !errors.Is(err, boots.ErrClaimed) {
		t.Errorf("another key after a restart: got %v, want ErrClaimed", err)
	}
}

// While the disk takes no writes, machines boot and are forgotten without end. What waits for
// the disk is bounded: boots that it never had need no deletion, and others wait up to a limit.
func TestDeletionsThatWaitAreBounded(t *testing.T) {
	const machines, known, limit = 50_000, 2000, 20_000
	broken := fmt.Errorf("%w: no space left on device", boots.ErrUnavailable)
	for what, tt := range map[string]struct {
		full, lost error
		most       int // deletions
		left       int // of the known ones, those that were given up
	}{
		"refused":  {full: broken, most: known},
		"not kept": {lost: broken, most: limit, left: known},
	} {
		t.Run(what, func(t *testing.T) {
			d, c := newDisk(), &clock{now: epoch}
			b := d.open(t, c)
			for n := range known {
				b.Discover(declared(n), c.Now())
			}
			if err := b.Flush(); err != nil {
				t.Fatal(err)
			}
			d.fail(tt.full, tt.lost)
			for n := range machines {
				b.Discover(declared(known+n), c.Now())
				if n%5000 == 0 {
					if err := b.Flush(); !errors.Is(err, broken) {
						t.Fatalf("flush: got %v, want %v", err, broken)
					}
				}
			}
			d.fail(nil, nil)
			d.allow(0)
			if err := b.Flush(); err != nil {
				t.Fatal(err)
			}
			if _, got := d.allow(0); got < known || got > tt.most {
				t.Errorf("%d deletions waited, want %d to %d", got, known, tt.most)
			}
			if got, want := len(d.values), len(b.List())+tt.left; got != want {
				t.Errorf("the disk has %d boots, want %d", got, want)
			}
		})
	}
}

// A backlog that is longer than the queue is stored by several flushes: each goes on where the
// one before ended.
func TestFlushGoesOn(t *testing.T) {
	const machines, room = 4000, 1024
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	for n := range machines {
		b.Discover(declared(n), c.Now())
	}
	for flush := 1; ; flush++ {
		d.allow(room)
		err := b.Flush()
		if err == nil {
			break
		}
		if !errors.Is(err, errBusy) {
			t.Fatal(err)
		}
		if flush > machines/room {
			t.Fatalf("after %d flushes the disk has %d of %d boots", flush, len(d.values), machines)
		}
	}
	if len(d.values) != machines {
		t.Errorf("the disk has %d boots, want %d", len(d.values), machines)
	}
}

// After a lost write a flush stores again what was lost, and nothing else.
func TestFlushStoresOnceWhatWasKept(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	for n := range 3000 {
		b.Discover(declared(n), c.Now())
	}
	d.loseOne(errors.New("I/O error"))
	if err := b.Flush(); err == nil {
		t.Fatal("a lost write is no error")
	}
	kept := len(d.values)
	d.allow(0)
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	if puts, _ := d.allow(0); puts != 3000-kept || kept == 0 || len(d.values) != 3000 {
		t.Errorf("%d boots were kept, then %d stored; want 3000 together", kept, puts)
	}
}

func TestLoadRefuses(t *testing.T) {
	for id, value := range map[string]string{
		"20260301T120000.000000-525400000001": `{"record":{"id":"another"}}`,
		"x":                                   `{"record":{"id":"x"}}`,
		"20260301T120000.000000":              `{`,
	} {
		if err := boots.NewTable(newDisk(), (&clock{}).Now).Load(id, []byte(value)); err == nil {
			t.Errorf("%s: %s was loaded", id, value)
		}
	}
}

// M3: while the storage is unavailable, a machine gets a nonce and can claim its boot.
// The storage has nonce and claim together, or neither: with the nonce alone any key
// could claim the boot after a restart.
func TestStorageIsUnavailable(t *testing.T) {
	broken := fmt.Errorf("%w: no space left on device", boots.ErrUnavailable)
	for what, fail := range map[string]func(*disk){
		"refused":  func(d *disk) { d.fail(broken, nil) },
		"not kept": func(d *disk) { d.fail(nil, broken) },
	} {
		t.Run(what, func(t *testing.T) {
			d, c := newDisk(), &clock{now: epoch}
			b := d.open(t, c)
			b.NeedDiscover = true
			steps := 0
			b.OnStep = func(boots.Record, boots.StepTime) { steps++ }
			fail(d)
			b.Discover(plan(1), c.Now())
			nonce, err := b.Issue(plan(1))
			if err != nil {
				t.Fatal(err)
			}
			if steps != 2 {
				t.Errorf("%d steps were reported, want discover and script", steps)
			}
			d.fail(nil, nil)
			again := d.reopen(t, b, c)
			if err := again.Claim(mac(1), nonce, []byte("thief")); !errors.Is(err, boots.ErrNonce) {
				t.Errorf("a restart before the claim: got %v, want ErrNonce", err)
			}
			fail(d)
			if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
				t.Fatalf("claim: %v", err)
			}
			if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
				t.Errorf("the same key again: %v", err)
			}
			if err := b.Claim(mac(1), nonce, []byte("thief")); !errors.Is(err, boots.ErrClaimed) {
				t.Errorf("another key: got %v, want ErrClaimed", err)
			}
			if err := d.open(t, c).Claim(mac(1), nonce, []byte("thief")); !errors.Is(err, boots.ErrNonce) {
				t.Errorf("a crash after the claim: got %v, want ErrNonce", err)
			}
			d.fail(nil, nil)
			again = d.reopen(t, b, c)
			if err := again.Claim(mac(1), nonce, []byte("thief")); !errors.Is(err, boots.ErrClaimed) {
				t.Errorf("stored later: another key got %v, want ErrClaimed", err)
			}
			if err := again.Claim(mac(1), nonce, []byte("key")); err != nil {
				t.Errorf("stored later: the key got %v", err)
			}
		})
	}
}

// A nonce that was durable before the storage failed is claimed durably or not at all.
func TestStoredNonceIsClaimedDurably(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	nonce, err := b.Issue(plan(1))
	if err != nil {
		t.Fatal(err)
	}
	d.fail(nil, fmt.Errorf("%w: I/O error", boots.ErrUnavailable))
	if err := b.Claim(mac(1), nonce, []byte("key")); !errors.Is(err, boots.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	d.fail(nil, nil)
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Errorf("when the disk works: %v", err)
	}
}
