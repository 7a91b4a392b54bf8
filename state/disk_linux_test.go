package state_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/state"
	"drover/state/wal"
)

// mounted returns a directory on a disk of its own with a state: machines 1 to 3, node
// "a" and "b".
func mounted(t *testing.T) (dir string) {
	t.Helper()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=32m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	dir = filepath.Join(disk, "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	leaseAll(t, s, 1, 3)
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{node("a", "10.0.0.1"), node("b", "10.0.0.2")}, nil); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	return dir
}

// fillDisk fills the disk of a directory, and returns the file that does.
func fillDisk(t *testing.T, dir string) (filler string) {
	t.Helper()
	filler = filepath.Join(filepath.Dir(dir), "filler")
	fixture.FillDisk(t, filler)
	return filler
}

// M3: the store opens on a disk that takes no writes. It serves what it has, refuses
// changes with the reason, reports it, and loses nothing once the disk takes writes.
func TestOpenOnBadDisk(t *testing.T) {
	if !fixture.OwnMounts(t) {
		return
	}
	t.Run("full", func(t *testing.T) {
		dir := mounted(t)
		filler := fillDisk(t, dir)
		badDisk(t, dir, unix.ENOSPC, func() error { return os.Remove(filler) })
	})
	t.Run("read-only", func(t *testing.T) {
		dir := mounted(t)
		remount := func(flags uintptr) error { return unix.Mount("", filepath.Dir(dir), "", unix.MS_REMOUNT|flags, "") }
		if err := remount(unix.MS_RDONLY); err != nil {
			t.Fatal(err)
		}
		badDisk(t, dir, unix.EROFS, func() error { return remount(0) })
	})
}

// badDisk opens the state in dir. The disk fails with cause until heal is called.
func badDisk(t *testing.T, dir string, cause error, heal func() error) {
	t.Helper()
	s := open(t, dir)
	wantNodes(t, s, "a", "b")
	if got, ok := s.Leases.Of(mac(1)); !ok || got.Address != addr(1) {
		t.Errorf("the lease of machine 1 is %v, %t", got, ok)
	}
	if err := s.Health(); err == nil || !strings.Contains(err.Error(), cause.Error()) {
		t.Errorf("health: got %v, want %v", err, cause)
	}
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{node("c", "10.0.0.3")}, nil); !errors.Is(err, cause) {
		t.Errorf("a node: got %v, want %v", err, cause)
	}
	if err := commit(s.Leases, plan(100), addr(100), epoch); !errors.Is(err, cause) {
		t.Errorf("a lease: got %v, want %v", err, cause)
	}
	s.Leases.Release(plan(2), addr(2), epoch)
	nonce, err := s.Boots.Issue(plan(1))
	if err == nil {
		err = s.Boots.Claim(mac(1), nonce, []byte("key"))
	}
	if err != nil {
		t.Errorf("a boot: %v", err)
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the state is stored", func() bool { return s.Health() == nil })
	leaseAll(t, s, 101, 102)
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{node("d", "10.0.0.4")}, nil); err != nil {
		t.Error(err)
	}
	if err := s.Boots.Flush(); err != nil {
		t.Error(err)
	}
	again := open(t, copyState(t, dir))
	wantNodes(t, again, "a", "b", "d")
	for n, want := range map[int]bool{1: true, 2: false, 3: true, 101: true, 102: true} {
		if got, ok := again.Leases.Of(mac(n)); ok != want || ok && got.Address != addr(n) {
			t.Errorf("after a crash: machine %d has %v, %t", n, got, ok)
		}
	}
	if err := again.Boots.Claim(mac(1), nonce, []byte("thief")); err == nil {
		t.Error("after a crash: another key can claim the boot")
	}
	if err := again.Boots.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Errorf("after a crash: the boot's own key gets %v", err)
	}
}

// M3: on a disk that hangs the store opens, and refuses changes, until the disk works.
func TestOpenOnHangingDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	leaseAll(t, s, 1, 3)
	shut(t, s)
	fifo := filepath.Join(dir, "drover.2.snap.tmp")
	if err := unix.Mkfifo(fifo, 0o600); err != nil { // to open it hangs
		t.Fatal(err)
	}
	s, err := state.Open(dir, testOptions(state.Options{Patience: 3 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Leases.Of(mac(1)); !ok || got.Address != addr(1) {
		t.Errorf("the lease of machine 1 is %v, %t", got, ok)
	}
	fixture.Eventually(t, "Health to report it", func() bool {
		err := s.Health()
		return err != nil && strings.Contains(err.Error(), "the disk has taken no write since")
	})
	if err := commit(s.Leases, plan(4), addr(4), epoch); !errors.Is(err, wal.ErrHangs) {
		t.Errorf("a lease: got %v, want ErrHangs", err)
	}
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{node("a", "10.0.0.9")}, nil); !errors.Is(err, wal.ErrHangs) {
		t.Errorf("a node: got %v, want ErrHangs", err)
	}
	if _, err := s.Boots.Issue(plan(1)); err != nil {
		t.Errorf("a boot: %v", err)
	}
	s.Leases.Release(plan(2), addr(2), epoch)
	if err := os.Rename(fifo, fifo+".old"); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(fifo + ".old") // now the open ends, and to sync it fails
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	fixture.Eventually(t, "the state is stored", func() bool { return s.Health() == nil })
	leaseAll(t, s, 5, 5)
	shut(t, s)
	s = open(t, dir)
	for n, want := range map[int]bool{1: true, 2: false, 3: true, 5: true} {
		if _, ok := s.Leases.Of(mac(n)); ok != want {
			t.Errorf("after a restart: machine %d has a lease: %t", n, ok)
		}
	}
	wantNodes(t, s)
}

// M3: a store whose disk fills up uses the space of its log. Then it reports the disk,
// and loses nothing.
func TestDiskFillsUp(t *testing.T) {
	if !fixture.OwnMounts(t) {
		return
	}
	dir := mounted(t)
	s := open(t, dir)
	if err := s.Health(); err != nil {
		t.Error(err)
	}
	fillDisk(t, dir)
	leaseAll(t, s, 50, 60) // there is room in the log
	for n := 0; ; n++ {
		if n > 1<<16 {
			t.Fatal("the log is never full")
		}
		if err := commit(s.Leases, plan(61), addr(61), epoch.Add(time.Duration(n)*time.Minute)); err != nil {
			if health := s.Health(); !errors.Is(err, unix.ENOSPC) || !errors.Is(health, unix.ENOSPC) {
				t.Errorf("got %v, health %v; want a full disk", err, health)
			}
			break
		}
	}
	if err := os.Remove(filepath.Join(filepath.Dir(dir), "filler")); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the state is stored", func() bool { return s.Health() == nil })
	leaseAll(t, s, 62, 62)
	again := open(t, copyState(t, dir))
	for _, n := range []int{1, 3, 50, 60, 61, 62} {
		if _, ok := again.Leases.Of(mac(n)); !ok {
			t.Errorf("the lease of machine %d is lost", n)
		}
	}
}
