package boots_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"drover/pools/boots"
)

// pair is two servers with one key. What one tells reaches the other at once while linked.
type pair struct {
	*clock
	a, b   *boots.Table
	disks  [2]*disk
	linked bool
	last   boots.Claim // that a server told
	twice  int         // keys that were told of one boot
}

func newPair(t *testing.T) *pair {
	p := &pair{clock: &clock{now: epoch}, disks: [2]*disk{newDisk(), newDisk()}, linked: true}
	p.a, p.b = p.open(t, 0), p.open(t, 1)
	return p
}

// open opens the table of a server, as a restart does.
func (p *pair) open(t *testing.T, i int) *boots.Table {
	table := p.disks[i].open(t, p.clock)
	table.EventSecret, table.NeedDiscover = []byte("a secret of both servers"), true
	table.Sharing = &boots.Sharing{Server: [4]byte{byte(i + 1)}, Tell: func(c boots.Claim) {
		p.last = c
		if p.linked {
			if [...]*boots.Table{p.b, p.a}[i].Told(declared(1), c) {
				p.twice++
			}
		}
	}}
	return table
}

// script is a boot to its script, from server a. Both hear the DISCOVER.
func (p *pair) script(t *testing.T) string {
	t.Helper()
	for _, s := range []*boots.Table{p.a, p.b} {
		s.Discover(declared(1), p.Now())
		step(t, s, "", boots.StepOffer)
	}
	nonce, err := p.a.Issue(declared(1))
	if err != nil || len(nonce) != 64 {
		t.Fatalf("nonce %q, %v", nonce, err)
	}
	p.advance(10 * time.Second)
	return nonce
}

// claimAt claims a boot as a request to a server does.
func claimAt(s *boots.Table, nonce, key string) error {
	s.Adopt(declared(1), nonce)
	return s.Claim(mac(1), nonce, []byte(key))
}

// A key that has not claimed a boot never gets what is for the one that has, whichever server it
// asks, and whichever the node asked.
func TestSharedClaimOnce(t *testing.T) {
	for name, servers := range map[string]func(p *pair) (first, second *boots.Table){
		"at the issuer":        func(p *pair) (_, _ *boots.Table) { return p.a, p.b },
		"at the other one":     func(p *pair) (_, _ *boots.Table) { return p.b, p.a },
		"at the issuer, twice": func(p *pair) (_, _ *boots.Table) { return p.a, p.a },
		"at the other, twice":  func(p *pair) (_, _ *boots.Table) { return p.b, p.b },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			nonce := p.script(t)
			first, second := servers(p)
			if err := claimAt(first, nonce, "key"); err != nil {
				t.Fatal(err)
			}
			for _, s := range []*boots.Table{first, second} {
				if err := claimAt(s, nonce, "another"); !errors.Is(err, boots.ErrClaimed) {
					t.Errorf("another key: got %v, want ErrClaimed", err)
				}
				if err := claimAt(s, nonce, "key"); err != nil {
					t.Errorf("the same key: %v", err)
				}
			}
			if p.twice != 0 {
				t.Error("told of two keys")
			}
		})
	}
}

// After a restart a server knows what it was told.
func TestToldIsStored(t *testing.T) {
	p := newPair(t)
	nonce := p.script(t)
	if err := claimAt(p.a, nonce, "key"); err != nil {
		t.Fatal(err)
	}
	if err := p.b.Flush(); err != nil {
		t.Fatal(err)
	}
	p.b = p.open(t, 1)
	if err := claimAt(p.b, nonce, "another"); !errors.Is(err, boots.ErrClaimed) {
		t.Errorf("another key: got %v, want ErrClaimed", err)
	}
}

// A server takes only the nonces of others that have its key, for their machine and in their time.
func TestAdoptRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(t *testing.T, p *pair, nonce string) string
	}{
		{"another machine", func(_ *testing.T, p *pair, _ string) string {
			p.a.Discover(declared(2), p.Now())
			other, _ := p.a.Issue(declared(2))
			return other
		}},
		{"another key", func(t *testing.T, p *pair, _ string) string {
			p.a = p.open(t, 0)
			p.a.EventSecret = []byte("another secret")
			return p.script(t)
		}},
		{"no sharing", func(_ *testing.T, p *pair, nonce string) string { p.b.Sharing = nil; return nonce }},
		{"no secret", func(_ *testing.T, p *pair, nonce string) string { p.b.EventSecret = nil; return nonce }},
		{"too late", func(_ *testing.T, p *pair, nonce string) string { p.advance(boots.SharedLife); return nonce }},
		{"too early", func(_ *testing.T, p *pair, nonce string) string { p.advance(-2 * time.Minute); return nonce }},
		{"changed", func(_ *testing.T, _ *pair, nonce string) string {
			return nonce[:20] + string("0123456789abcdef"[15-strings.IndexByte("0123456789abcdef", nonce[20])]) + nonce[21:]
		}},
		{"short", func(_ *testing.T, _ *pair, nonce string) string { return nonce[:62] }},
		{"its own, which it voided", func(t *testing.T, p *pair, _ string) string {
			p.b.Discover(declared(1), p.Now())
			old, err := p.b.Issue(declared(1))
			if err == nil {
				_, err = p.b.Issue(declared(1))
			}
			if err != nil {
				t.Fatal(err)
			}
			return old
		}},
		{"older than the boot here", func(t *testing.T, p *pair, nonce string) string {
			p.advance(2 * time.Minute)
			p.b.Discover(declared(1), p.Now())
			if _, err := p.b.Issue(declared(1)); err != nil {
				t.Fatal(err)
			}
			return nonce
		}},
		{"older than the machine's last DISCOVER", func(_ *testing.T, p *pair, nonce string) string {
			p.advance(11 * time.Minute)
			p.b.Discover(declared(1), p.Now())
			return nonce
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t)
			nonce := tt.edit(t, p, p.script(t))
			if err := claimAt(p.b, nonce, "key"); !errors.Is(err, boots.ErrNonce) {
				t.Errorf("got %v, want ErrNonce", err)
			}
		})
	}
}

// Clocks of two servers differ by a minute at most.
func TestAdoptSkew(t *testing.T) {
	for _, skew := range []time.Duration{-50 * time.Second, 50 * time.Second} {
		p := newPair(t)
		p.a.Discover(declared(1), p.Now())
		p.advance(skew)
		p.b.Discover(declared(1), p.Now())
		p.advance(-skew)
		nonce, err := p.a.Issue(declared(1))
		if err != nil {
			t.Fatal(err)
		}
		p.advance(skew)
		if err := claimAt(p.b, nonce, "key"); err != nil {
			t.Errorf("%s: %v", skew, err)
		}
		if got := len(p.b.List()); got != 1 {
			t.Errorf("%s: %d boots, want one", skew, got)
		}
	}
}

// A boot that the other server issued voids nothing here before it is claimed.
func TestAdoptVoidsNothing(t *testing.T) {
	p := newPair(t)
	nonce := p.script(t)
	own, err := p.b.Issue(declared(1))
	if err != nil {
		t.Fatal(err)
	}
	p.b.Adopt(declared(1), nonce)
	if err := p.b.Claim(mac(1), own, []byte("key")); err != nil {
		t.Errorf("the script of this server: %v", err)
	}
}

// An event is signed with the same key at each server.
func TestSharedEvents(t *testing.T) {
	p := newPair(t)
	nonce := p.script(t)
	if err := claimAt(p.a, nonce, "key"); err != nil {
		t.Fatal(err)
	}
	key := p.a.EventKey(mac(1), nonce)
	e := boots.Report{Nonce: nonce, Event: boots.Event{Step: boots.StepSwitch, Uptime: 1}}
	if err := p.b.Report(mac(1), e); !errors.Is(err, boots.ErrUnsigned) {
		t.Errorf("without a signature: got %v, want ErrUnsigned", err)
	}
	e.Signed = func(got []byte) bool { return key != nil && string(got) == string(key) }
	if err := p.b.Report(mac(1), e); err != nil {
		t.Errorf("signed: %v", err)
	}
	if r, _ := p.b.Current(mac(1)); r.Elsewhere {
		t.Errorf("at the server that has the event: %+v", r)
	}
	if r, _ := p.a.Current(mac(1)); !r.Elsewhere {
		t.Errorf("at the server that has it not: %+v", r)
	}
	e.Step, e.Uptime = boots.StepOnline, 2
	if err := p.b.Report(mac(1), e); err != nil {
		t.Errorf("online: %v", err)
	}
	for name, s := range map[string]*boots.Table{"a": p.a, "b": p.b} {
		if r, _ := s.Current(mac(1)); r.Elsewhere || !r.Ended() || len(s.List()) != 1 {
			t.Errorf("after the end at b, at %s: %+v", name, s.List())
		}
	}
}

// A server died after the claim, before it could tell; the node reported its end at the other one.
func TestEndBeforeClaim(t *testing.T) {
	p := newPair(t)
	nonce := p.script(t)
	p.linked = false
	if err := claimAt(p.a, nonce, "key"); err != nil {
		t.Fatal(err)
	}
	p.b.Adopt(declared(1), nonce)
	if err := p.b.Step(mac(1), nonce, boots.Event{Step: boots.StepOnline}); err != nil {
		t.Fatal(err)
	}
	p.linked = true
	for _, c := range p.a.Claims() { // a is back
		p.b.Told(declared(1), c)
	}
	if r, _ := p.a.Current(mac(1)); !r.Ended() {
		t.Errorf("a was not told of the end: %+v", r)
	}
}

// A machine boots twice in a minute. What is told of its first boot again, as after the restart of
// a server, changes nothing of the second one.
func TestToldAgain(t *testing.T) {
	p := newPair(t)
	if err := claimAt(p.a, p.script(t), "key"); err != nil {
		t.Fatal(err)
	}
	first := p.last
	nonce := p.script(t)
	if err := claimAt(p.b, nonce, "second key"); err != nil {
		t.Fatal(err)
	}
	first.End = boots.StepOnline
	for name, s := range map[string]*boots.Table{"a": p.a, "b": p.b} {
		s.Told(declared(1), first)
		if err := claimAt(s, nonce, "second key"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(s.List()) != 2 || len(s.Claims()) > 1 {
			t.Errorf("%s: boots %+v, claims %+v", name, s.List(), s.Claims())
		}
	}
}

// What a server is told when the machine is in its next boot already changes nothing, and two keys
// are found.
func TestTold(t *testing.T) {
	p := newPair(t)
	p.linked = false
	nonce := p.script(t)
	for s, key := range map[*boots.Table]string{p.a: "key", p.b: "another"} {
		if err := claimAt(s, nonce, key); err != nil {
			t.Fatal(err)
		}
	}
	if !p.a.Told(declared(1), p.last) && !p.b.Told(declared(1), p.last) { // each knows its own
		t.Error("two keys claimed the boot, and no server finds that")
	}
	sum := func(b byte) []byte { return append(make([]byte, 31), b) }
	c := boots.Claim{MAC: mac(1), Nonce: sum(1), Key: sum(2), Issued: epoch}
	for name, bad := range map[string]boots.Claim{
		"nonce": {MAC: mac(1), Nonce: sum(1)[1:], Key: sum(2), Issued: epoch},
		"key":   {MAC: mac(1), Nonce: sum(1), Issued: epoch},
		"time":  {MAC: mac(1), Nonce: sum(1), Key: sum(2), Issued: epoch.Add(time.Hour)},
		"old":   {MAC: mac(1), Nonce: sum(1), Key: sum(2), Issued: epoch.Add(-time.Hour)},
	} {
		p.a.Told(declared(1), bad)
		if err := claimAt(p.a, nonce, "key"); err != nil {
			t.Errorf("%s: the boot under way: %v", name, err)
		}
	}
	p.linked = true
	if err := p.b.Report(mac(1), boots.Report{Nonce: nonce, Event: boots.Event{Step: boots.StepOnline}}); err != nil {
		t.Fatal(err)
	}
	if p.a.Told(declared(1), boots.Claim{}) {
		t.Error("an empty claim is one")
	}
	c.Issued = p.Now()
	p.a.Told(declared(1), c)
	if err := claimAt(p.a, nonce, "key"); !errors.Is(err, boots.ErrNonce) {
		t.Errorf("after a later claim: got %v, want ErrNonce", err)
	}
}
