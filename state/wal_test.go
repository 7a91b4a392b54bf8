package state_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
	"drover/state/wal"
)

// leaseAll leases addresses to machines in the order of their numbers. Machine n
// gets address n.
func leaseAll(t *testing.T, s *state.Store, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		if err := commit(s.Leases, plan(n), addr(n), epoch); err != nil {
			t.Fatalf("lease %d: %v", n, err)
		}
	}
}

// files returns the contents of the files in a state directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names(t, dir) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			all[name] = string(content)
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return all
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			all = append(all, e.Name())
		}
	}
	return all
}

// currentLog returns the log in use, and the offset at which its records end.
func currentLog(t *testing.T, dir string) (name string, generation uint64, end int64) {
	t.Helper()
	for _, other := range names(t, dir) {
		var n uint64
		if _, err := fmt.Sscanf(other, "drover.%d.log", &n); err == nil && n > generation {
			name, generation = other, n
		}
	}
	end, err := wal.ReadRecords([]byte(files(t, dir)[name]), generation, func(int64, []byte) error { return nil }, func(from, to int64) error {
		return fmt.Errorf("damage from %d to %d", from, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	return name, generation, end
}

// copyState copies the files of a store in use, as a power cut would leave
// them. It starts again when the store meanwhile begins its next generation.
func copyState(t *testing.T, dir string) string {
	t.Helper()
	for {
		before := names(t, dir)
		all := files(t, dir)
		if len(all) == len(before) && slices.Equal(before, names(t, dir)) {
			return write(t, all)
		}
	}
}

// write creates a directory with files, given by name.
func write(t *testing.T, all map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// wantLeases opens a copy of a state and fails unless it has this number of
// leases.
func wantLeases(t *testing.T, dir string, want int) {
	t.Helper()
	if got := wantAtLeast(t, dir, want); got != want {
		t.Errorf("got %d leases, want %d", got, want)
	}
}

// wantAtLeast is [wantLeases] for a state that may have more leases than were
// acknowledged.
func wantAtLeast(t *testing.T, dir string, want int) (got int) {
	t.Helper()
	s, err := state.Open(dir, testOptions(state.Options{LogSize: 1500}))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	for n := 1; n <= want; n++ {
		if got, ok := s.Leases.Holds(plan(n).MAC, epoch); !ok || got != addr(n) {
			t.Fatalf("machine %d: got %v, want %s", n, got, addr(n))
		}
	}
	return len(s.Leases.List())
}

func TestWAL(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, testOptions(state.Options{LogSize: 1500}))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("leases that are only in the log", func(t *testing.T) {
		leaseAll(t, s, 1, 3)
		wantLeases(t, copyState(t, dir), 3)
	})
	t.Run("the log was full, several times", func(t *testing.T) {
		_, before, _ := currentLog(t, dir)
		last := 3
		for generation := before; generation < before+3 && last < 250; last++ {
			leaseAll(t, s, last+1, last+1)
			wantLeases(t, copyState(t, dir), last+1)
			_, generation, _ = currentLog(t, dir)
		}
		fixture.Eventually(t, "the old generations are gone", func() bool { return len(names(t, dir)) <= 4 })
	})
	t.Run("a lease that ended is not back", func(t *testing.T) {
		s.Leases.Release(plan(2), addr(2), epoch)
		if err := commit(s.Leases, plan(251), addr(251), epoch); err != nil {
			t.Fatal(err)
		}
		again, err := state.Open(copyState(t, dir), testOptions(state.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, again)
		if got, ok := again.Leases.Holds(plan(2).MAC, epoch); ok {
			t.Errorf("machine 2 holds %s again", got)
		}
		leaseAll(t, s, 2, 2)
	})
	t.Run("closed and opened", func(t *testing.T) {
		want := len(s.Leases.List())
		shut(t, s)
		if got := wantAtLeast(t, dir, 3); got != want {
			t.Errorf("got %d leases, want %d", got, want)
		}
	})
}

// TestCutOff: a last record that a crash cut off is no error. Only that record
// is lost.
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, testOptions(state.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	leaseAll(t, s, 1, 20)
	file, _, end := currentLog(t, dir)
	for name, edit := range map[string]struct {
		at   int64
		data string
		want int
	}{
		"rubbish behind it":         {end, "rubbish rubbish rubbish", 20},
		"its last byte is another":  {end - 1, "\x01", 19},
		"its first byte is missing": {end - 70, strings.Repeat("\x00", 20), 19},
		"all zeros behind it":       {end, strings.Repeat("\x00", 100), 20},
	} {
		t.Run(name, func(t *testing.T) {
			all := files(t, copyState(t, dir))
			all[file] = all[file][:edit.at] + edit.data + all[file][edit.at+int64(len(edit.data)):]
			wantLeases(t, write(t, all), edit.want)
			all[file] = all[file][:edit.at]
			wantLeases(t, write(t, all), edit.want)
		})
	}
}

func flip(content string, at int) string {
	b := []byte(content)
	b[at] ^= 4
	return string(b)
}

// TestSnapshotFails: while the store cannot write a snapshot, it loses no lease
// and its logs do not multiply. Once it can, it removes the old generations.
func TestSnapshotFails(t *testing.T) {
	dir := t.TempDir()
	var log fixture.Log
	s, err := state.Open(dir, testOptions(state.Options{LogSize: 1000, Log: slog.New(slog.NewTextHandler(&log, nil))}))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	obstacle := filepath.Join(dir, "drover.2.snap.tmp")
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	n := 0
	renew := func() {
		n++
		if err := commit(s.Leases, plan(1), addr(1), epoch.Add(time.Duration(n)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Eventually(t, "three attempts failed", func() bool {
		renew()
		return strings.Count(log.String(), "state snapshot failed, trying again") >= 3
	})
	if got, want := names(t, dir), []string{"drover.1.log", "drover.1.snap", "drover.2.log", "drover.db"}; !slices.Equal(got, want) {
		t.Errorf("got the files %q, want %q", got, want)
	}
	wantLeases(t, copyState(t, dir), 1)
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the old generations are gone", func() bool {
		renew()
		return !slices.Contains(names(t, dir), "drover.1.log")
	})
	wantLeases(t, copyState(t, dir), 1)
}

// TestWritesFail: a disk that fails costs no acknowledged lease. When the disk
// works again, so does the store.
func TestWritesFail(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, testOptions(state.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var failing atomic.Bool
	broken := errors.New("I/O error")
	s.FailWrites(func() error {
		if failing.Load() {
			return broken
		}
		return nil
	})
	leaseAll(t, s, 1, 10)
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{node("a", "10.0.0.1")}, nil); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	for range 3 {
		if err := commit(s.Leases, plan(11), addr(11), epoch); !errors.Is(err, broken) {
			t.Errorf("got %v, want the error of the disk", err)
		}
	}
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{node("b", "10.0.0.2")}, []string{"a"}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the disk", err)
	}
	wantAtLeast(t, copyState(t, dir), 10)
	failing.Store(false)
	leaseAll(t, s, 11, 20)
	wantLeases(t, copyState(t, dir), 20)
	shut(t, s)
	wantLeases(t, dir, 20)
	all, err := open(t, dir).Nodes.Nodes()
	if err != nil || len(all) != 1 || all[0].Name != "a" {
		t.Errorf("got nodes %v, %v; want a alone", all, err)
	}
}

// hang makes the disk hang until the test calls release.
func hang(s *state.Store) (release func()) {
	gate := make(chan struct{})
	s.FailWrites(func() error { <-gate; return nil })
	return sync.OnceFunc(func() { close(gate) })
}

// wideAddr and widePlan are addr and plan for more machines than addr has
// addresses.
func wideAddr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(1 + n>>16), byte(n >> 8), byte(n)})
}

func widePlan(n int) *resolve.Plan {
	p := plan(n + 1<<12)
	p.Range = pools.Range{First: wideAddr(0), Last: wideAddr(1<<20 - 1)}
	return p
}

// fillQueue leases addresses until the queue is full. wait waits until all are
// stored, and returns their number.
func fillQueue(t *testing.T, s *state.Store) (wait func() (leases int)) {
	t.Helper()
	var waits []func() error
	for n := 1; ; n++ {
		if n > 1<<20 {
			t.Fatal("the queue is never full")
		}
		wait, err := s.Leases.Commit(widePlan(n), wideAddr(n), epoch)
		if err != nil {
			if !errors.Is(err, wal.ErrBusy) || errors.Is(err, pools.ErrRefused) {
				t.Fatalf("lease %d: got %v, want ErrBusy and no refusal", n, err)
			}
			break
		}
		waits = append(waits, wait)
	}
	return func() int {
		t.Helper()
		for i, wait := range waits {
			if err := wait(); err != nil {
				t.Fatalf("lease %d: %v", i+1, err)
			}
		}
		return len(waits)
	}
}

// TestHangingDisk: while the disk hangs, a lease that does not fit into the
// queue is an error. Nothing else waits: look-ups answer, and calls that store
// their change in the background return.
func TestHangingDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.NextBoots.Set(pools.NextRescue, "m1"); err != nil {
		t.Fatal(err)
	}
	if err := s.NextBoots.Take("m1"); err != nil {
		t.Fatal(err)
	}
	leaseAll(t, s, 1, 3)
	release := hang(s)
	defer release()
	done := make(chan func() int, 1)
	go func() {
		wait := fillQueue(t, s)
		l := s.Leases
		l.Of(mac(1))
		l.At(addr(1))
		l.Named("m1")
		l.Holds(mac(1), epoch)
		l.List()
		l.ByPool(epoch)
		if a, _, err := l.Offer(plan(1), netip.Addr{}, epoch); a != addr(1) || err != nil {
			t.Errorf("an offer of what it has: got %s, %v", a, err)
		}
		if _, err := l.Commit(plan(1), addr(1), epoch); err != nil {
			t.Errorf("a lease that is stored: %v", err)
		}
		l.Release(plan(2), addr(2), epoch)
		l.Decline(plan(3), addr(3), "in use", epoch)
		l.End(addr(1), mac(1), epoch)
		s.Boots.Discover(plan(1), epoch)
		s.Boots.Current(mac(1))
		s.Unknowns.Seen(seen(1, 1))
		s.Unknowns.Forget(mac(1))
		s.NextBoots.Discover("m1")
		if got := s.NextBoots.Of("m1"); got != "" {
			t.Errorf("the boot that took it is over; got %q", got)
		}
		done <- wait
	}()
	var wait func() int
	select {
	case wait = <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("a look-up waits for the disk")
	}
	release()
	leases := wait()
	if leases < 5000 {
		t.Errorf("only %d leases wait for the disk", leases)
	}
	if err := commit(s.Leases, widePlan(leases+1), wideAddr(leases+1), epoch); err != nil {
		t.Errorf("when the disk works again: %v", err)
	}
	s = reopen(t, s, dir)
	if got, want := len(s.Leases.List()), leases+4; got != want {
		t.Errorf("after a restart: got %d leases, want %d", got, want)
	}
}

// TestDiscoverWaitsForNoDisk: a DHCP worker ends the next boot that a boot has
// taken, and does not wait until the end is stored.
func TestDiscoverWaitsForNoDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := errors.Join(s.NextBoots.Set(pools.NextRescue, "m1"), s.NextBoots.Take("m1")); err != nil {
		t.Fatal(err)
	}
	release := hang(s)
	defer release()
	returned := make(chan bool)
	go func() {
		s.NextBoots.Discover("m1")
		close(returned)
	}()
	select {
	case <-returned:
	case <-time.After(time.Minute):
		t.Fatal("Discover waits for the disk")
	}
	release()
	if got := reopen(t, s, dir).NextBoots.Of("m1"); got != "" {
		t.Errorf("after a restart: got %q, want nothing: it was stored", got)
	}
}

// TestAsyncWritesAreNotForgotten: the store later writes the end of a lease
// that found the queue full.
func TestAsyncWritesAreNotForgotten(t *testing.T) {
	dir := t.TempDir()
	var log fixture.Log
	s, err := state.Open(dir, testOptions(state.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), LogSize: 1 << 16}))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	leaseAll(t, s, 1, 2)
	release := hang(s)
	wait := fillQueue(t, s)
	s.Leases.Release(plan(2), addr(2), epoch)
	release()
	wait()
	fixture.Eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), `msg="state write failed" writes=1`) })
	n := 0
	fixture.Eventually(t, "the end of the lease is on disk", func() bool {
		n++
		if err := commit(s.Leases, plan(1), addr(1), epoch.Add(time.Duration(n)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		again, err := state.Open(copyState(t, dir), testOptions(state.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, again)
		_, held := again.Leases.Holds(mac(2), epoch)
		return !held
	})
}

// TestSlowDisk checks that the log reports a slow disk for as long as it is slow.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log fixture.Log
		s, err := state.Open(t.TempDir(), testOptions(state.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}))
		if err != nil {
			t.Fatal(err)
		}
		var takes time.Duration
		s.FailWrites(func() error { time.Sleep(takes); return nil })
		leaseAll(t, s, 1, 2)
		if got := log.String(); strings.Contains(got, "disk") {
			t.Errorf("a disk that is fast enough: the log is\n%s", got)
		}
		takes = 3 * time.Second
		stored := make(chan error, 1)
		go func() { stored <- commit(s.Leases, plan(3), addr(3), epoch) }()
		time.Sleep(takes - time.Millisecond)
		if got, want := log.String(), "disk write takes long"; !strings.Contains(got, want) {
			t.Errorf("while the disk works at a write, the log is\n%swant %q", got, want)
		}
		time.Sleep(time.Second)
		if got, want := log.String(), "disk writes work again"; !strings.Contains(got, want) {
			t.Errorf("then the log is\n%swant %q", got, want)
		}
		if err := <-stored; err != nil {
			t.Error(err)
		}
		shut(t, s)
	})
}
