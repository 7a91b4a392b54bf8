package boots_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/pools/boots"
)

func step(t *testing.T, b *boots.Table, nonce string, steps ...boots.Step) {
	t.Helper()
	for _, s := range steps {
		if err := b.Step(mac(1), nonce, boots.Event{Step: s}); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func issue(t *testing.T, b *boots.Table) string {
	t.Helper()
	nonce, err := b.Issue(plan(1))
	if err != nil {
		t.Fatal(err)
	}
	return nonce
}

// timeline formats a record as "discover+0 script+3 init+9!error".
func timeline(r boots.Record) string {
	var words []string
	for _, s := range r.Steps {
		w := fmt.Sprintf("%s+%.0f", s.Step, s.Time.Sub(r.Started).Seconds())
		if s.Error != "" {
			w += "!" + s.Error
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func TestBootTimeline(t *testing.T) {
	b, c := openBoots(t)
	b.Discover(plan(1), c.Now())
	c.advance(time.Second)
	step(t, b, "", boots.StepLoader)
	c.advance(time.Second)
	b.Discover(plan(1), c.Now()) // iPXE's own
	nonce := issue(t, b)
	c.advance(time.Second)
	step(t, b, "", boots.StepKernel, boots.StepKernel, boots.StepInitrd)
	c.advance(time.Second)
	step(t, b, nonce, boots.StepInit, boots.StepNetwork)
	step(t, b, "", boots.StepToken)

	r, ok := b.Current(mac(1))
	if !ok {
		t.Fatal("no boot")
	}
	want := "discover+0 loader+1 script+2 kernel+3 initrd+3 init+4 network+4 token+4"
	if got := timeline(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r.Node != plan(1).Node || r.Pool != "catchall" || r.Image != "debian-12" || r.MAC != mac(1) {
		t.Errorf("record does not identify the node: %+v", r)
	}
	if len(b.List()) != 1 {
		t.Errorf("got %d boots, want one", len(b.List()))
	}
}

func TestWhenABootBegins(t *testing.T) {
	tests := []struct {
		name string
		play func(t *testing.T, b *boots.Table, c *clock)
		want []string // newest first
	}{
		{"DISCOVERs of one firmware phase are one boot", func(t *testing.T, b *boots.Table, c *clock) {
			b.Discover(plan(1), c.Now())
			b.Discover(plan(1), c.advance(10*time.Minute))
		}, []string{"discover+0"}},
		{"a DISCOVER after ten minutes is another one", func(t *testing.T, b *boots.Table, c *clock) {
			b.Discover(plan(1), c.Now())
			b.Discover(plan(1), c.advance(10*time.Minute+1))
		}, []string{"discover+0", "discover+0"}},
		{"a DISCOVER after the script is the same", func(t *testing.T, b *boots.Table, c *clock) {
			b.Discover(plan(1), c.Now())
			issue(t, b)
			b.Discover(plan(1), c.advance(time.Second))
		}, []string{"discover+0 script+0"}},
		{"a DISCOVER after the kernel is another one", func(t *testing.T, b *boots.Table, c *clock) {
			b.Discover(plan(1), c.Now())
			issue(t, b)
			step(t, b, "", boots.StepKernel)
			b.Discover(plan(1), c.advance(time.Second))
		}, []string{"discover+0", "discover+0 script+0 kernel+0"}},
		{"a script without a DISCOVER", func(t *testing.T, b *boots.Table, _ *clock) {
			issue(t, b)
		}, []string{"script+0"}},
		{"a script twice", func(t *testing.T, b *boots.Table, c *clock) {
			issue(t, b)
			c.advance(time.Minute)
			issue(t, b)
		}, []string{"script+0"}},
		{"a script after the kernel", func(t *testing.T, b *boots.Table, _ *clock) {
			nonce := issue(t, b)
			step(t, b, nonce, boots.StepInit)
			issue(t, b)
		}, []string{"script+0", "script+0 init+0"}},
		{"a script long after the last one", func(t *testing.T, b *boots.Table, c *clock) {
			issue(t, b)
			c.advance(11 * time.Minute)
			issue(t, b)
		}, []string{"script+0", "script+0"}},
		{"the clock goes back", func(t *testing.T, b *boots.Table, c *clock) {
			issue(t, b)
			step(t, b, "", boots.StepKernel)
			b.Discover(plan(1), c.advance(-time.Hour))
		}, []string{"discover+0", "script+0 kernel+0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, c := openBoots(t)
			tt.play(t, b, c)
			var got []string
			for _, r := range b.List() {
				got = append(got, timeline(r))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestNonceAndKey(t *testing.T) {
	b, c := openBoots(t)
	key, other := []byte("public key of this boot"), []byte("of somebody else")

	if err := b.Claim(mac(1), "guessed", key); !errors.Is(err, boots.ErrNonce) {
		t.Errorf("claim before any boot: got %v", err)
	}
	b.Discover(plan(1), c.Now())
	if err := b.Claim(mac(1), "", key); !errors.Is(err, boots.ErrNonce) {
		t.Errorf("claim before the script: got %v", err)
	}
	first := issue(t, b)
	second := issue(t, b)
	if first == second || len(second) != 64 {
		t.Errorf("nonces %q and %q: want two, of 256 bits", first, second)
	}
	checks := []struct {
		name  string
		nonce string
		key   []byte
		want  error
	}{
		{"void nonce", first, key, boots.ErrNonce},
		{"empty nonce", "", key, boots.ErrNonce},
		{"nonce and more", second + "A", key, boots.ErrNonce},
		{"right nonce", second, key, nil},
		{"again", second, key, nil},
		{"other key", second, other, boots.ErrClaimed},
		{"other key, wrong nonce", first, other, boots.ErrNonce},
		{"still the first key's", second, key, nil},
	}
	for _, tt := range checks {
		if err := b.Claim(mac(1), tt.nonce, tt.key); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := b.Claim(mac(2), second, key); !errors.Is(err, boots.ErrNonce) {
		t.Errorf("another machine's nonce: got %v", err)
	}
	step(t, b, second, boots.StepInit)
	if err := b.Step(mac(1), first, boots.Event{Step: boots.StepNetwork}); !errors.Is(err, boots.ErrNonce) {
		t.Errorf("step with a void nonce: got %v", err)
	}

	b.Discover(plan(1), c.advance(time.Minute))
	if err := b.Claim(mac(1), second, key); err != nil {
		t.Errorf("a forged DISCOVER cut off the boot: %v", err)
	}
	step(t, b, second, boots.StepConfig)
	step(t, b, "", boots.StepToken)
	want := "script+0 init+0 config+60 token+60"
	if got := timeline(b.List()[1]); !strings.HasSuffix(got, want) {
		t.Errorf("steps after a forged DISCOVER: got %q, want %q at the end", got, want)
	}

	third := issue(t, b)
	if err := b.Claim(mac(1), second, key); !errors.Is(err, boots.ErrNonce) {
		t.Errorf("the nonce of the boot before: got %v", err)
	}
	if err := b.Claim(mac(1), third, other); err != nil {
		t.Errorf("a new boot has a new key: %v", err)
	}
}

// A program on a running node, or behind its address, must not get the nonce of a new
// boot.
func TestNeedDiscover(t *testing.T) {
	b, c := openBoots(t)
	b.NeedDiscover = true
	checkRefused := func(when string) {
		t.Helper()
		if _, err := b.Issue(plan(1)); !errors.Is(err, boots.ErrNotBooting) {
			t.Errorf("%s: got error %v, want ErrNotBooting", when, err)
		}
	}
	checkRefused("before any DISCOVER")
	b.Discover(plan(1), c.Now())
	issue(t, b)
	step(t, b, "", boots.StepKernel)
	issue(t, b) // the initrd did not arrive: iPXE fetches its script again
	c.advance(9 * time.Minute)
	nonce := issue(t, b) // and again, after the server was away
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Fatal(err)
	}
	checkRefused("after the boot was claimed")
	step(t, b, nonce, boots.StepInit, boots.StepOnline)
	checkRefused("on a running node")
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Errorf("the running boot lost its claim: %v", err)
	}
	b.Discover(plan(1), c.advance(time.Hour))
	issue(t, b)
}

// A boot that nobody claims ends by the clock. Finding M9: every pod on a machine whose
// image has no drover-init, or that went on to its disk, got a new nonce, config and join
// at any time.
func TestUnclaimedBootExpires(t *testing.T) {
	key := []byte("key")
	for _, tt := range []struct {
		name   string
		play   func(t *testing.T, b *boots.Table, nonce string)
		lasts  time.Duration // until when the nonce can be claimed
		script time.Duration // until when there is another script
	}{
		{"only the script", func(*testing.T, *boots.Table, string) {}, 10 * time.Minute, 10 * time.Minute},
		{"a kernel without drover-init", func(t *testing.T, b *boots.Table, _ string) {
			step(t, b, "", boots.StepKernel, boots.StepInitrd)
		}, 20 * time.Minute, 10 * time.Minute},
		{"drover-init", func(t *testing.T, b *boots.Table, nonce string) {
			step(t, b, "", boots.StepKernel, boots.StepInitrd)
			step(t, b, nonce, boots.StepInit)
		}, time.Hour, 10 * time.Minute},
		{"drover-init in the queue", func(t *testing.T, b *boots.Table, nonce string) {
			step(t, b, nonce, boots.StepInit, boots.StepQueued)
		}, 24 * time.Hour, 10 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, c := newDisk(), &clock{now: epoch}
			boot := func() (*boots.Table, string) {
				b := d.open(t, c)
				b.NeedDiscover = true
				b.Discover(plan(1), c.Now())
				nonce := issue(t, b)
				tt.play(t, b, nonce)
				b = d.reopen(t, b, c)
				b.NeedDiscover = true
				return b, nonce
			}
			b, nonce := boot()
			c.advance(tt.lasts)
			if err := b.Claim(mac(1), nonce, key); err != nil {
				t.Errorf("claim after %s: %v", tt.lasts, err)
			}
			c.advance(time.Hour)
			b, nonce = boot()
			c.advance(tt.lasts + 1)
			if err := b.Step(mac(1), nonce, boots.Event{Step: boots.StepInit}); !errors.Is(err, boots.ErrNonce) {
				t.Errorf("event after more than %s: got %v, want ErrNonce", tt.lasts, err)
			}
			if err := b.Claim(mac(1), nonce, key); !errors.Is(err, boots.ErrNonce) {
				t.Errorf("claim after more than %s: got %v, want ErrNonce", tt.lasts, err)
			}
			b, _ = boot()
			c.advance(tt.script)
			issue(t, b)
			c.advance(1)
			for range 3 { // asking again does not prolong it
				err := b.Step(mac(1), "", boots.Event{Step: boots.StepScript, Error: "not booting"})
				if _, issued := b.Issue(plan(1)); err != nil || !errors.Is(issued, boots.ErrNotBooting) {
					t.Errorf("script after more than %s: got %v, %v, want ErrNotBooting", tt.script, issued, err)
				}
				c.advance(9 * time.Minute)
			}
		})
	}
}

// A nonce that was issued late lasts as long as any other.
func TestLateScript(t *testing.T) {
	b, c := openBoots(t)
	b.NeedDiscover = true
	b.Discover(plan(1), c.Now())
	issue(t, b)
	c.advance(9 * time.Minute)
	nonce := issue(t, b)
	c.advance(9 * time.Minute)
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Error(err)
	}
}

func TestStepRefuses(t *testing.T) {
	b, c := openBoots(t)
	if err := b.Step(mac(1), "", boots.Event{Step: boots.StepReady}); !errors.Is(err, boots.ErrNoBoot) {
		t.Errorf("machine without a boot: got %v, want ErrNoBoot", err)
	}
	if err := b.Step(mac(1), "x", boots.Event{Step: boots.StepInit}); !errors.Is(err, boots.ErrNonce) {
		t.Errorf("machine without a boot, with a nonce: got %v, want ErrNonce", err)
	}
	b.Discover(plan(1), c.Now())
	nonce := issue(t, b)
	for _, s := range []boots.Step{"", "coffee", boots.StepDiscover, boots.StepToken, boots.StepReady} {
		if err := b.Step(mac(1), nonce, boots.Event{Step: s}); err == nil {
			t.Errorf("a node reported %q and was accepted", s)
		}
	}
	if err := b.Step(mac(1), "", boots.Event{Step: "coffee"}); err == nil {
		t.Error("step coffee was accepted")
	}
}

func TestErrorsOfABoot(t *testing.T) {
	b, c := openBoots(t)
	nonce := issue(t, b)
	fail := func(s boots.Step, msg string) {
		t.Helper()
		c.advance(time.Second)
		if err := b.Step(mac(1), nonce, boots.Event{Step: s, Error: msg}); err != nil {
			t.Fatal(err)
		}
	}
	wantError := func(want string) {
		t.Helper()
		if r, _ := b.Current(mac(1)); r.Error != want {
			t.Errorf("after %s: got error %q, want %q", timeline(r), r.Error, want)
		}
	}
	step(t, b, nonce, boots.StepInit, boots.StepNetwork)
	fail(boots.StepImage, "connection refused")
	fail(boots.StepImage, "connection refused") // a retry that changes nothing
	wantError("connection refused")
	fail(boots.StepImage, "wrong digest")
	step(t, b, nonce, boots.StepNetwork) // an earlier step: no progress
	wantError("wrong digest")
	step(t, b, nonce, boots.StepImage)
	wantError("")
	fail(boots.StepConfig, "no\x1b[31m such\n\tfile \xff")
	step(t, b, nonce, boots.StepSwitch)
	wantError("")

	r, _ := b.Current(mac(1))
	want := "script+0 init+0 network+0 image+1!connection refused image+3!wrong digest image+3 " +
		"config+4!no?[31m such  file ? switch-root+4"
	if got := timeline(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
