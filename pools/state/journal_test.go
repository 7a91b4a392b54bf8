package state_test

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/pools/state"
)

// journalOf is the start of a range of MACs and addresses that a journal test
// leases, one after the other: machine n has address n.
func leaseAll(t *testing.T, s *state.Store, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		if err := commit(s.Leases, plan(n), addr(n), epoch); err != nil {
			t.Fatalf("lease %d: %v", n, err)
		}
	}
}

// copyState copies the files of a store that is in use, as a power cut would
// leave them.
func copyState(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, f.Name()), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// wantLeases opens a copy of a state and counts its leases.
func wantLeases(t *testing.T, dir string, want int) {
	t.Helper()
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	if got := len(s.Leases.List()); got != want {
		t.Errorf("got %d leases, want %d", got, want)
	}
	for n := 1; n <= want; n++ {
		if got, ok := s.Leases.Holds(plan(n).MAC, epoch); !ok || got != addr(n) {
			t.Fatalf("machine %d: got %v, want %s", n, got, addr(n))
		}
	}
}

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, state.Options{JournalSize: 1500})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("leases that are only in the journal", func(t *testing.T) {
		leaseAll(t, s, 1, 3)
		wantLeases(t, copyState(t, dir), 3)
	})
	t.Run("the journal was full, several times", func(t *testing.T) {
		leaseAll(t, s, 4, 60)
		wantLeases(t, copyState(t, dir), 60)
	})
	t.Run("a lease that ended is not back", func(t *testing.T) {
		s.Leases.Release(plan(7).MAC, addr(7), epoch)
		leaseAll(t, s, 60, 60) // nothing to write
		if err := commit(s.Leases, plan(61), addr(61), epoch); err != nil {
			t.Fatal(err)
		}
		again, err := state.Open(copyState(t, dir), state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, again)
		if got, ok := again.Leases.Holds(plan(7).MAC, epoch); ok {
			t.Errorf("machine 7 holds %s again", got)
		}
		leaseAll(t, s, 7, 7)
	})
	t.Run("closed and opened", func(t *testing.T) {
		shut(t, s)
		wantLeases(t, dir, 61)
	})
}

// TestJournalCutOff: what a crash leaves of the last record is no error, and
// costs that record alone.
func TestJournalCutOff(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	leaseAll(t, s, 1, 20)
	file, end := currentFile(t, dir)
	for name, edit := range map[string]struct {
		at   int64
		data string
		want int
	}{
		"rubbish behind it":        {end, "rubbish rubbish rubbish", 20},
		"its last byte is missing": {end - 1, "\x00", 19},
		"all zeros behind it":      {end, strings.Repeat("\x00", 100), 20},
	} {
		t.Run(name, func(t *testing.T) {
			broken := copyState(t, dir)
			f, err := os.OpenFile(filepath.Join(broken, file), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte(edit.data), edit.at); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			wantLeases(t, broken, edit.want)
		})
	}
}

// currentFile returns the file of the journal that is in use, and where its
// records end.
func currentFile(t *testing.T, dir string) (name string, end int64) {
	t.Helper()
	for _, name := range []string{"leases.0.log", "leases.1.log"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for end = 0; binary.LittleEndian.Uint64(b[end:]) != 0; {
			end += 16 + int64(binary.LittleEndian.Uint32(b[end+8:]))
		}
		if end > 0 {
			return name, end
		}
	}
	t.Fatal("the journal is empty")
	return "", 0
}

// TestJournalFails: a disk that does not work costs no lease that somebody was
// told of, and when it works again, so does the store.
func TestJournalFails(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var failing atomic.Bool
	broken := errors.New("I/O error")
	s.FailJournal(func() error {
		if failing.Load() {
			return broken
		}
		return nil
	})
	leaseAll(t, s, 1, 10)
	failing.Store(true)
	for range 3 {
		if err := commit(s.Leases, plan(11), addr(11), epoch); !errors.Is(err, broken) {
			t.Errorf("got %v, want the error of the disk", err)
		}
	}
	wantAtLeast(t, copyState(t, dir), 10)
	failing.Store(false)
	leaseAll(t, s, 11, 20)
	wantLeases(t, copyState(t, dir), 20)
	shut(t, s)
	wantLeases(t, dir, 20)
}

// wantAtLeast is [wantLeases] where more may be stored than anybody was told.
func wantAtLeast(t *testing.T, dir string, want int) {
	t.Helper()
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	for n := 1; n <= want; n++ {
		if _, ok := s.Leases.Holds(plan(n).MAC, epoch); !ok {
			t.Errorf("machine %d lost its lease", n)
		}
	}
}

// FuzzJournal: whatever a disk makes of the journal, it is read up to where it
// makes sense.
func FuzzJournal(f *testing.F) {
	dir := f.TempDir()
	s, err := state.Open(dir, state.Options{JournalSize: 4096})
	if err != nil {
		f.Fatal(err)
	}
	for n := 1; n <= 5; n++ {
		if err := commit(s.Leases, plan(n), addr(n), epoch); err != nil {
			f.Fatal(err)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "leases.0.log"))
	if err != nil {
		f.Fatal(err)
	}
	shut(f, s)
	generation := binary.LittleEndian.Uint64(content)
	if n, err := state.ReadJournal(content, generation); n != 5 || err != nil {
		f.Fatalf("got %d changes, %v; want 5", n, err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := state.ReadJournal(b, generation); n > len(b)/6 {
			t.Errorf("%d changes in %d bytes, %v", n, len(b), err)
		}
	})
}

// TestSlowDisk: a disk that holds everybody up is told of while it does.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log fixture.Log
		s, err := state.Open(t.TempDir(), state.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		var takes time.Duration
		s.FailJournal(func() error { time.Sleep(takes); return nil })
		leaseAll(t, s, 1, 2)
		if got := log.String(); strings.Contains(got, "disk") {
			t.Errorf("a disk that is fast enough: the log is\n%s", got)
		}
		takes = 3 * time.Second
		stored := make(chan error, 1)
		go func() { stored <- commit(s.Leases, plan(3), addr(3), epoch) }()
		time.Sleep(takes - time.Millisecond)
		if got, want := log.String(), "the disk has not taken a write yet"; !strings.Contains(got, want) {
			t.Errorf("while the disk works at a write, the log is\n%swant %q", got, want)
		}
		time.Sleep(time.Second)
		if got, want := log.String(), "the disk took a write at last"; !strings.Contains(got, want) {
			t.Errorf("then the log is\n%swant %q", got, want)
		}
		if err := <-stored; err != nil {
			t.Error(err)
		}
		shut(t, s)
	})
}
