package state_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools/boots"
	"drover/state"
	"drover/state/wal"
)

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
	if err := s.Boots.Claim(mac(1), nonce, []byte("another")); !errors.Is(err, boots.ErrClaimed) {
		t.Errorf("another key: got %v, want ErrClaimed", err)
	}
	if err := s.Boots.Claim(mac(1), nonce, key); err != nil {
		t.Errorf("the same key: got %v", err)
	}
	for name, content := range files(t, dir) {
		for _, secret := range []string{nonce, string(key)} {
			if strings.Contains(content, secret) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}
}

func TestTimelinesSurviveClose(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Boots.Discover(plan(1), epoch)
	s.Boots.Discover(plan(2), epoch)
	if err := s.Boots.Step(mac(1), "", boots.Event{Step: boots.StepLoader, Detail: "snponly.efi"}); err != nil {
		t.Fatal(err)
	}
	want := s.Boots.List()
	got := reopen(t, s, dir).Boots.List()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Steps need no Close to be stored, only a moment.
func TestStepsAreStoredSoon(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, testOptions(state.Options{FlushEvery: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	s.Boots.Discover(plan(1), epoch)
	fixture.Eventually(t, "the boot is on disk", func() bool {
		again, err := state.Open(copyState(t, dir), testOptions(state.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, again)
		return len(again.Boots.List()) == 1
	})
}

// A disk that hangs: boots are refused when the queue is full, and the table stays
// readable all the time.
func TestBootsWhileTheDiskHangs(t *testing.T) {
	s := open(t, t.TempDir())
	release := hang(s)
	const machines = 3000
	refused := make(chan error, machines)
	fill := fillQueue(t, s)
	for n := range machines {
		go func() {
			_, err := s.Boots.Issue(plan(n))
			refused <- err
		}()
	}
	if err := <-refused; !errors.Is(err, wal.ErrBusy) {
		t.Errorf("got %v, want ErrBusy: a nonce was issued that is not on disk", err)
	}
	if _, ok := s.Boots.Current(mac(machines)); ok {
		t.Error("a boot of a machine that has none")
	}
	release()
	for range machines - 1 {
		<-refused
	}
	fill()
}
