package state_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"drover/pools/boots"
	"drover/pools/state"
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

// A disk that hangs: boots are refused when the queue is full, and the table
// stays readable all the time.
func TestBootsWhileTheDiskHangs(t *testing.T) {
	s := open(t, t.TempDir())
	release, err := s.HoldTable()
	if err != nil {
		t.Fatal(err)
	}
	const machines = 3000 // more than the queue holds
	refused := make(chan error, machines)
	for n := range machines {
		go func() {
			_, err := s.Boots.Issue(plan(n))
			refused <- err
		}()
	}
	if err := <-refused; err == nil {
		t.Error("a nonce was issued that is not on disk")
	}
	if _, ok := s.Boots.Current(mac(machines)); ok {
		t.Error("a boot of a machine that has none")
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	for range machines - 1 {
		<-refused
	}
}
