package readiness

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
)

// A disk that hangs or is full is a problem of /readyz and in the log within seconds,
// with its directory, and is gone when it works again (finding M3).
func TestDiskMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log fixture.Log
		m := NewDisks(slog.New(slog.NewTextHandler(&log, nil)), "/state", "/images", "/loaders", sick{})
		hang, mended := make(chan struct{}), atomic.Bool{}
		m.directories[0].check = func(string) error { <-hang; return nil }
		m.directories[1].check = func(path string) error {
			if mended.Load() {
				return nil
			}
			return &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
		}
		m.directories[2].check = func(string) error { return nil }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		time.Sleep(5 * time.Second)
		all := m.problems()
		if len(all) != 2 || all[0].Warning || all[0].Part != "disk of the state" || !strings.Contains(all[0].Problem, "/state: no answer for ") || !strings.Contains(all[1].Problem, "write /images: no space left on device") {
			t.Errorf("got %+v", all)
		}
		for _, p := range all {
			if p.Brief == "" || strings.Contains(p.Brief, "/") {
				t.Errorf("brief: %q", p.Brief)
			}
		}
		time.Sleep(time.Minute)
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("got %d lines, want one for each directory:\n%s", n, log.String())
		}
		close(hang)
		mended.Store(true)
		time.Sleep(5 * time.Second)
		if all := m.problems(); len(all) != 0 || strings.Count(log.String(), "directory usable again") != 2 {
			t.Errorf("got %+v, and the log\n%s", all, log.String())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A full and a read-only file system are found, and the check leaves nothing behind.
func TestStores(t *testing.T) {
	dir := t.TempDir()
	if err := stores(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := stores(filepath.Join(dir, "gone")); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a directory that does not exist: %v", err)
	}
	fixture.Root(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread with its mounts ends with the goroutine
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m")); err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
		if err := stores(dir); err != nil {
			t.Errorf("with 3 MiB free: %v", err)
		}
		file := filepath.Join(dir, "file")
		if err := os.WriteFile(file, make([]byte, 5<<19), 0o600); err != nil {
			t.Error(err)
		}
		if err := stores(dir); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) {
			t.Errorf("with half a MiB free: got %v", err)
		}
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
		if err := stores(dir); err != nil {
			t.Errorf("after there is room again: %v", err)
		}
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Error(err)
		}
		if err := stores(dir); !errors.Is(err, syscall.EROFS) {
			t.Errorf("read-only: got %v", err)
		}
	}()
	<-done
}
