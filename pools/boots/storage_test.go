package boots_test

import (
	"errors"
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
