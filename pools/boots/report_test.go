package boots_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"drover/pools/boots"
)

// claimed returns a table with a claimed boot of mac(1), its nonce and its key of events.
func claimed(t *testing.T) (b *boots.Table, nonce string, key []byte) {
	t.Helper()
	b, _ = openBoots(t)
	b.EventSecret = []byte("the secret of the server")
	nonce = issue(t, b)
	if key := b.EventKey(mac(1), nonce); key != nil {
		t.Fatalf("there is a key before the claim: %x", key)
	}
	if err := b.Claim(mac(1), nonce, []byte("public key")); err != nil {
		t.Fatal(err)
	}
	return b, nonce, b.EventKey(mac(1), nonce)
}

// with returns the check of an event that is signed with a key.
func with(key []byte) func([]byte) bool {
	return func(k []byte) bool { return bytes.Equal(k, key) }
}

// Low finding: pods read the nonce in /proc/cmdline, forged the timeline of their node, and
// used up its events. With the boot's key they cannot.
func TestSignedEvents(t *testing.T) {
	b, nonce, key := claimed(t)
	if len(key) != 32 {
		t.Fatalf("got a key of %d bytes, want 32", len(key))
	}
	report := func(uptime float64, s boots.Step, problem string, signed func([]byte) bool) error {
		return b.Report(mac(1), boots.Report{Event: boots.Event{Step: s, Uptime: uptime, Error: problem}, Nonce: nonce, Signed: signed})
	}
	for _, tt := range []struct {
		name   string
		uptime float64
		step   boots.Step
		err    string
		signed func([]byte) bool
		want   error
	}{
		{"on its way since before the claim", 1, boots.StepInit, "", nil, nil},
		{"signed", 20, boots.StepConfig, "", with(key), nil},
		{"the same again", 20, boots.StepConfig, "", with(key), boots.ErrRepeated},
		{"an older one", 19, boots.StepOnline, "old", with(key), boots.ErrRepeated},
		{"with another key", 21, boots.StepOnline, "forged", with([]byte("another")), boots.ErrUnsigned},
		{"without a signature", 21, boots.StepOnline, "forged", nil, boots.ErrUnsigned},
		{"the next", 21, boots.StepOnline, "", with(key), nil},
	} {
		if err := report(tt.uptime, tt.step, tt.err, tt.signed); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	r, _ := b.Current(mac(1))
	if got, want := timeline(r), "script+0 init+0 config+0 online+0"; got != want {
		t.Errorf("got timeline %q, want %q", got, want)
	}
}

// A node has no key before its config has arrived. Its events count, but pods cannot fill the timeline.
func TestUnsignedEvents(t *testing.T) {
	b, nonce, _ := claimed(t)
	step(t, b, nonce, boots.StepConfig)
	refused := 0
	for i := range 100 {
		err := b.Step(mac(1), nonce, boots.Event{Step: boots.StepJoined, Error: fmt.Sprint("forged ", i)})
		if errors.Is(err, boots.ErrUnsigned) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	r, _ := b.Current(mac(1))
	if refused != 81 || len(r.Steps) > 30 {
		t.Errorf("%d of 100 were refused, and the timeline has %d items; want 81, and 30 at most", refused, len(r.Steps))
	}
	step(t, b, "", boots.StepReady) // the server still observes
}

// The keys of two boots differ, and last as long as the secret of the server.
func TestEventKey(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	boot := func() (string, []byte) {
		nonce := issue(t, b)
		if err := b.Claim(mac(1), nonce, []byte("public key")); err != nil {
			t.Fatal(err)
		}
		return nonce, b.EventKey(mac(1), nonce)
	}
	if _, key := boot(); key != nil {
		t.Errorf("without a secret: got key %x", key)
	}
	b.EventSecret = []byte("the secret of the server")
	step(t, b, "", boots.StepKernel)
	_, first := boot()
	step(t, b, "", boots.StepKernel)
	nonce, second := boot()
	if bytes.Equal(first, second) {
		t.Error("two boots have one key")
	}
	b = d.reopen(t, b, c)
	b.EventSecret = []byte("the secret of the server")
	if !bytes.Equal(b.EventKey(mac(1), nonce), second) {
		t.Error("the key is another one after a restart")
	}
	if b.EventKey(mac(1), "guessed") != nil || b.EventKey(mac(2), nonce) != nil {
		t.Error("there is a key for a wrong nonce")
	}
}
