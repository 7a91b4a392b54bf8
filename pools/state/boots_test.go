package state_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/state"
)

// clock is a clock that stands still until it is told to go on.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

func openBoots(t *testing.T) (*state.Boots, *clock) {
	t.Helper()
	s := open(t, t.TempDir())
	c := &clock{now: epoch}
	s.Boots.Now = c.Now
	return s.Boots, c
}

func step(t *testing.T, b *state.Boots, nonce string, steps ...pools.Step) {
	t.Helper()
	for _, s := range steps {
		if err := b.Step(mac(1), nonce, pools.Event{Step: s}); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func issue(t *testing.T, b *state.Boots) string {
	t.Helper()
	nonce, err := b.Issue(plan(1))
	if err != nil {
		t.Fatal(err)
	}
	return nonce
}

// timeline shows a record as "discover+0 script+3 init+9!error".
func timeline(r pools.BootRecord) string {
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
	step(t, b, "", pools.StepLoader)
	c.advance(time.Second)
	b.Discover(plan(1), c.Now()) // iPXE's own
	nonce := issue(t, b)
	c.advance(time.Second)
	step(t, b, "", pools.StepKernel, pools.StepKernel, pools.StepInitrd)
	c.advance(time.Second)
	step(t, b, nonce, pools.StepInit, pools.StepNetwork)
	step(t, b, "", pools.StepToken)

	r, ok := b.Current(mac(1))
	if !ok {
		t.Fatal("no boot")
	}
	want := "discover+0 loader+1 script+2 kernel+3 initrd+3 init+4 network+4 token+4"
	if got := timeline(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r.Node != plan(1).Node || r.Pool != "catchall" || r.Image != "debian-12" || r.MAC != mac(1) {
		t.Errorf("record does not say whose boot it is: %+v", r)
	}
	if len(b.List()) != 1 {
		t.Errorf("got %d boots, want one", len(b.List()))
	}
}

func TestWhenABootBegins(t *testing.T) {
	tests := []struct {
		name string
		play func(t *testing.T, b *state.Boots, c *clock)
		want []string // newest first
	}{
		{"DISCOVERs of one firmware phase are one boot", func(t *testing.T, b *state.Boots, c *clock) {
			b.Discover(plan(1), c.Now())
			b.Discover(plan(1), c.advance(10*time.Minute))
		}, []string{"discover+0"}},
		{"a DISCOVER after ten minutes is another one", func(t *testing.T, b *state.Boots, c *clock) {
			b.Discover(plan(1), c.Now())
			b.Discover(plan(1), c.advance(10*time.Minute+1))
		}, []string{"discover+0", "discover+0"}},
		{"a DISCOVER after the script is the same", func(t *testing.T, b *state.Boots, c *clock) {
			b.Discover(plan(1), c.Now())
			issue(t, b)
			b.Discover(plan(1), c.advance(time.Second))
		}, []string{"discover+0 script+0"}},
		{"a DISCOVER after the kernel is another one", func(t *testing.T, b *state.Boots, c *clock) {
			b.Discover(plan(1), c.Now())
			issue(t, b)
			step(t, b, "", pools.StepKernel)
			b.Discover(plan(1), c.advance(time.Second))
		}, []string{"discover+0", "discover+0 script+0 kernel+0"}},
		{"a script without a DISCOVER", func(t *testing.T, b *state.Boots, _ *clock) {
			issue(t, b)
		}, []string{"script+0"}},
		{"a script twice", func(t *testing.T, b *state.Boots, c *clock) {
			issue(t, b)
			c.advance(time.Minute)
			issue(t, b)
		}, []string{"script+0"}},
		{"a script after the kernel", func(t *testing.T, b *state.Boots, _ *clock) {
			nonce := issue(t, b)
			step(t, b, nonce, pools.StepInit)
			issue(t, b)
		}, []string{"script+0", "script+0 init+0"}},
		{"a script long after the last one", func(t *testing.T, b *state.Boots, c *clock) {
			issue(t, b)
			c.advance(11 * time.Minute)
			issue(t, b)
		}, []string{"script+0", "script+0"}},
		{"the clock goes back", func(t *testing.T, b *state.Boots, c *clock) {
			issue(t, b)
			step(t, b, "", pools.StepKernel)
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

	if err := b.Claim(mac(1), "guessed", key); !errors.Is(err, pools.ErrNonce) {
		t.Errorf("claim before any boot: got %v", err)
	}
	b.Discover(plan(1), c.Now())
	if err := b.Claim(mac(1), "", key); !errors.Is(err, pools.ErrNonce) {
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
		{"void nonce", first, key, pools.ErrNonce},
		{"empty nonce", "", key, pools.ErrNonce},
		{"nonce and more", second + "A", key, pools.ErrNonce},
		{"right nonce", second, key, nil},
		{"again", second, key, nil},
		{"other key", second, other, pools.ErrClaimed},
		{"other key, wrong nonce", first, other, pools.ErrNonce},
		{"still the first key's", second, key, nil},
	}
	for _, tt := range checks {
		if err := b.Claim(mac(1), tt.nonce, tt.key); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := b.Claim(mac(2), second, key); !errors.Is(err, pools.ErrNonce) {
		t.Errorf("another machine's nonce: got %v", err)
	}
	step(t, b, second, pools.StepInit)
	if err := b.Step(mac(1), first, pools.Event{Step: pools.StepNetwork}); !errors.Is(err, pools.ErrNonce) {
		t.Errorf("step with a void nonce: got %v", err)
	}

	b.Discover(plan(1), c.advance(time.Minute))
	if err := b.Claim(mac(1), second, key); err != nil {
		t.Errorf("a forged DISCOVER cut off the boot: %v", err)
	}
	step(t, b, second, pools.StepConfig)
	step(t, b, "", pools.StepToken)
	want := "script+0 init+0 config+60 token+60"
	if got := timeline(b.List()[1]); !strings.HasSuffix(got, want) {
		t.Errorf("steps after a forged DISCOVER: got %q, want %q at the end", got, want)
	}

	third := issue(t, b)
	if err := b.Claim(mac(1), second, key); !errors.Is(err, pools.ErrNonce) {
		t.Errorf("the nonce of the boot before: got %v", err)
	}
	if err := b.Claim(mac(1), third, other); err != nil {
		t.Errorf("a new boot has a new key: %v", err)
	}
}

// TestNeedDiscover: what runs on a node that is up, or behind its address, must
// not get the nonce of a new boot.
func TestNeedDiscover(t *testing.T) {
	b, c := openBoots(t)
	b.NeedDiscover = true
	refused := func(when string) {
		t.Helper()
		if _, err := b.Issue(plan(1)); !errors.Is(err, pools.ErrNotBooting) {
			t.Errorf("%s: got error %v, want ErrNotBooting", when, err)
		}
	}
	refused("before any DISCOVER")
	b.Discover(plan(1), c.Now())
	issue(t, b)
	step(t, b, "", pools.StepKernel)
	issue(t, b) // the initrd did not arrive: iPXE asks again
	c.advance(time.Hour)
	issue(t, b) // and again, after the server was away
	nonce := issue(t, b)
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Fatal(err)
	}
	refused("after the boot was claimed")
	step(t, b, nonce, pools.StepInit, pools.StepOnline)
	refused("on a running node")
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Errorf("the running boot lost its claim: %v", err)
	}
	b.Discover(plan(1), c.advance(time.Hour))
	issue(t, b)
}

func TestNonceSurvivesARestartAndOnlyItsHashIsStored(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	key := []byte("this is the public key of a boot")
	nonce, err := s.Boots.Issue(plan(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Boots.Claim(mac(1), nonce, key); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s, dir)
	if err := s.Boots.Claim(mac(1), nonce, []byte("another")); !errors.Is(err, pools.ErrClaimed) {
		t.Errorf("another key: got %v, want ErrClaimed", err)
	}
	if err := s.Boots.Claim(mac(1), nonce, key); err != nil {
		t.Errorf("the same key: got %v", err)
	}
	file, err := os.ReadFile(filepath.Join(dir, state.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{nonce, string(key)} {
		if strings.Contains(string(file), secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
}

func TestTimelinesSurviveClose(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Boots.Discover(plan(1), epoch)
	s.Boots.Discover(plan(2), epoch)
	if err := s.Boots.Step(mac(1), "", pools.Event{Step: pools.StepLoader, Detail: "snponly.efi"}); err != nil {
		t.Fatal(err)
	}
	want := s.Boots.List()
	got := reopen(t, s, dir).Boots.List()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Steps need no Close to be stored, only a moment.
func TestStepsAreWrittenBehind(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, state.Options{FlushEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	s.Boots.Discover(plan(1), epoch)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if n, err := bootsInCopy(t, dir); err == nil && n == 1 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the boot did not get into the file within a minute")
}

// bootsInCopy counts the boots in a copy of a state file that is in use; it is
// an error when a write fell between.
func bootsInCopy(t *testing.T, dir string) (int, error) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dir, state.FileName))
	if err != nil {
		return 0, err
	}
	backup := t.TempDir()
	if err := os.WriteFile(filepath.Join(backup, state.FileName), file, 0o600); err != nil {
		return 0, err
	}
	s, err := state.Open(backup, state.Options{})
	if err != nil {
		return 0, err
	}
	return len(s.Boots.List()), s.Close()
}

func TestStepRefuses(t *testing.T) {
	b, c := openBoots(t)
	if err := b.Step(mac(1), "", pools.Event{Step: pools.StepReady}); !errors.Is(err, state.ErrNoBoot) {
		t.Errorf("machine without a boot: got %v, want ErrNoBoot", err)
	}
	if err := b.Step(mac(1), "x", pools.Event{Step: pools.StepInit}); !errors.Is(err, pools.ErrNonce) {
		t.Errorf("machine without a boot, with a nonce: got %v, want ErrNonce", err)
	}
	b.Discover(plan(1), c.Now())
	nonce := issue(t, b)
	for _, s := range []pools.Step{"", "coffee", pools.StepDiscover, pools.StepToken, pools.StepReady} {
		if err := b.Step(mac(1), nonce, pools.Event{Step: s}); err == nil {
			t.Errorf("a node reported %q and was believed", s)
		}
	}
	if err := b.Step(mac(1), "", pools.Event{Step: "coffee"}); err == nil {
		t.Error("step coffee was accepted")
	}
}

func TestErrorsOfABoot(t *testing.T) {
	b, c := openBoots(t)
	nonce := issue(t, b)
	fail := func(s pools.Step, msg string) {
		t.Helper()
		c.advance(time.Second)
		if err := b.Step(mac(1), nonce, pools.Event{Step: s, Error: msg}); err != nil {
			t.Fatal(err)
		}
	}
	wantError := func(want string) {
		t.Helper()
		if r, _ := b.Current(mac(1)); r.Error != want {
			t.Errorf("after %s: got error %q, want %q", timeline(r), r.Error, want)
		}
	}
	step(t, b, nonce, pools.StepInit, pools.StepNetwork)
	fail(pools.StepImage, "connection refused")
	fail(pools.StepImage, "connection refused") // a retry that changes nothing
	wantError("connection refused")
	fail(pools.StepImage, "wrong digest")
	step(t, b, nonce, pools.StepNetwork) // an earlier step: no progress
	wantError("wrong digest")
	step(t, b, nonce, pools.StepImage)
	wantError("")
	fail(pools.StepConfig, "no\x1b[31m such\n\tfile \xff")
	step(t, b, nonce, pools.StepSwitch)
	wantError("")

	r, _ := b.Current(mac(1))
	want := "script+0 init+0 network+0 image+1!connection refused image+3!wrong digest image+3 " +
		"config+4!no[31m such  file ? switch-root+4"
	if got := timeline(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
