package boots_test

import (
	"errors"
	"testing"
	"time"

	"drover/pools/boots"
)

func issueUnproved(t *testing.T, b *boots.Table) string {
	t.Helper()
	nonce, err := b.IssueUnproved(plan(1))
	if err != nil {
		t.Fatal(err)
	}
	return nonce
}

// Anyone can send a request for a boot script by UDP in a machine's name, and a DISCOVER. Both
// voided the nonce of the machine, whose config request was then refused for good.
func TestForgedRequests(t *testing.T) {
	for _, tt := range []struct {
		name string
		boot func(t *testing.T, b *boots.Table) (nonce string) // of the machine
	}{
		{"script by HTTP", func(t *testing.T, b *boots.Table) string { return issue(t, b) }},
		{"kernel by HTTP", func(t *testing.T, b *boots.Table) string {
			nonce := issue(t, b)
			step(t, b, "", boots.StepKernel, boots.StepInitrd)
			return nonce
		}},
		{"drover-init", func(t *testing.T, b *boots.Table) string {
			nonce := issue(t, b)
			step(t, b, nonce, boots.StepInit)
			return nonce
		}},
		{"script by TFTP, acknowledged", func(t *testing.T, b *boots.Table) string {
			for range 10 { // forged ones came before
				issueUnproved(t, b)
			}
			nonce := issueUnproved(t, b)
			b.Prove(mac(1), nonce)
			return nonce
		}},
		{"script by TFTP, the first", issueUnproved},
		{"script by TFTP, after a forged one", func(t *testing.T, b *boots.Table) string {
			issueUnproved(t, b)
			return issueUnproved(t, b)
		}},
		{"claimed", func(t *testing.T, b *boots.Table) string {
			nonce := issue(t, b)
			claim(t, b, nonce, "key")
			return nonce
		}},
	} {
		for name, flood := range map[string]func(*boots.Table, *clock) error{
			"requests": func(b *boots.Table, _ *clock) error { _, err := b.IssueUnproved(plan(1)); return err },
			"requests and DISCOVERs": func(b *boots.Table, c *clock) error {
				b.Discover(plan(1), c.Now())
				_, err := b.IssueUnproved(plan(1))
				return err
			},
		} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				d, c := newDisk(), &clock{now: epoch}
				b := d.open(t, c)
				b.NeedDiscover = true
				b.Discover(plan(1), c.Now())
				nonce := tt.boot(t, b)
				for range 20 {
					c.advance(time.Second)
					if err := flood(b, c); err != nil && !errors.Is(err, boots.ErrNotBooting) {
						t.Fatal(err)
					}
				}
				b = d.open(t, c) // after kill -9
				b.NeedDiscover = true
				claim(t, b, nonce, "key")
				if err := b.Claim(mac(1), nonce, []byte("another")); !errors.Is(err, boots.ErrClaimed) {
					t.Errorf("another key: got %v, want ErrClaimed", err)
				}
				step(t, b, nonce, boots.StepConfig)
				step(t, b, "", boots.StepToken)
				r := bootOf(b, nonce)
				if _, ok := r.Reached(boots.StepToken); !ok {
					t.Errorf("the machine's timeline is %q, want one with its token", timeline(r))
				}
			})
		}
	}
}

// bootOf returns the boot of a nonce: the one that has what its node reports.
func bootOf(b *boots.Table, nonce string) (found boots.Record) {
	_ = b.Step(mac(1), nonce, boots.Event{Step: boots.StepOnline})
	for _, r := range b.List() {
		if _, ok := r.Reached(boots.StepOnline); ok {
			found = r
		}
	}
	return found
}

func claim(t *testing.T, b *boots.Table, nonce, key string) {
	t.Helper()
	if err := b.Claim(mac(1), nonce, []byte(key)); err != nil {
		t.Errorf("claim: %v", err)
	}
}

func wantVoid(t *testing.T, b *boots.Table, what, nonce string) {
	t.Helper()
	if err := b.Unclaimed(mac(1), nonce); !errors.Is(err, boots.ErrNonce) {
		t.Errorf("%s: got %v, want ErrNonce", what, err)
	}
}

// Firmware asks for its script again, from another port: it has the last one.
func TestLastUnprovedNonce(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	var nonces []string
	for range 20 {
		nonces = append(nonces, issueUnproved(t, b))
	}
	inForce := 0
	for _, nonce := range nonces {
		if b.Unclaimed(mac(1), nonce) == nil {
			inForce++
		}
	}
	if inForce != 5 {
		t.Errorf("%d nonces are in force, want 5", inForce)
	}
	claim(t, b, nonces[19], "key")
	b = d.open(t, c) // the claim of one has voided the others, durably
	for _, nonce := range nonces[:19] {
		wantVoid(t, b, "another nonce", nonce)
	}
}

// What voids an unproved nonce: a proved one, and a claim.
func TestUnprovedNonceIsVoid(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(t *testing.T, b *boots.Table)
	}{
		{"a proved one", func(t *testing.T, b *boots.Table) { issue(t, b) }},
		{"an acknowledged one", func(t *testing.T, b *boots.Table) { b.Prove(mac(1), issueUnproved(t, b)) }},
		{"a claim", func(t *testing.T, b *boots.Table) { claim(t, b, issueUnproved(t, b), "key") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, c := newDisk(), &clock{now: epoch}
			b := d.open(t, c)
			unproved := issueUnproved(t, b)
			tt.play(t, b)
			wantVoid(t, b, "unproved", unproved)
			wantVoid(t, d.reopen(t, b, c), "unproved, after a restart", unproved)
		})
	}
}

// An unproved nonce of a later timeline is void as soon as the machine claims its boot, after
// a crash too.
func TestClaimVoidsLaterNonces(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	b.NeedDiscover = true
	b.Discover(plan(1), c.Now())
	nonce := issue(t, b)
	step(t, b, "", boots.StepKernel)
	b.Discover(plan(1), c.advance(time.Second))
	forged := issueUnproved(t, b)
	claim(t, b, nonce, "key")
	wantVoid(t, b, "forged", forged)
	wantVoid(t, d.open(t, c), "forged, after a crash", forged)
	claim(t, d.open(t, c), nonce, "key")
}

// A machine that boots again by TFTP takes the place of the boot before.
func TestBootsAgainByTFTP(t *testing.T) {
	b, c := openBoots(t)
	b.NeedDiscover = true
	for _, prove := range []bool{true, false, true} {
		b.Discover(plan(1), c.advance(time.Hour))
		nonce := issueUnproved(t, b)
		if prove {
			b.Prove(mac(1), nonce)
		}
		step(t, b, "", boots.StepKernel, boots.StepInitrd)
		step(t, b, nonce, boots.StepInit)
		claim(t, b, nonce, "key of this boot"+nonce)
		if r, _ := b.Current(mac(1)); timeline(r) != "discover+0 script+0 kernel+0 initrd+0 init+0" {
			t.Errorf("got %q", timeline(r))
		}
		if _, err := b.IssueUnproved(plan(1)); !errors.Is(err, boots.ErrNotBooting) {
			t.Errorf("after the claim: got %v, want ErrNotBooting", err)
		}
	}
}

// Each unproved nonce lasts as long as any other, however many requests follow.
func TestUnprovedNonceExpires(t *testing.T) {
	b, c := openBoots(t)
	nonce := issue(t, b)
	for range 3 {
		c.advance(4 * time.Minute)
		issueUnproved(t, b)
	}
	wantVoid(t, b, "after 12 minutes", nonce)
}
