package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"drover/internal/atomicfile"
)

// TestKept: a disk that hangs is waited for as long as patience says, and by each caller for
// itself; in the end the file has the newest content.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		frozen := make(chan struct{})
		var full atomic.Bool
		k := &atomicfile.Kept{Path: path, Mode: 0o600, Replace: func(path string, data []byte, mode os.FileMode) error {
			<-frozen
			if full.Load() {
				return syscall.ENOSPC
			}
			return atomicfile.Write(path, data, mode)
		}}
		began := time.Now()
		results := make(chan error, 2)
		go func() { results <- k.Write([]byte("one")) }()
		synctest.Wait()
		go func() { results <- k.Write([]byte("two")) }()
		for range 2 {
			if err := <-results; !errors.Is(err, atomicfile.ErrHangs) {
				t.Errorf("a disk that hangs: got %v", err)
			}
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %s", took)
		}
		full.Store(true)
		close(frozen)
		if err := k.Write([]byte("three")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a full disk: got %v", err)
		}
		if k.Stored() {
			t.Error("a full disk has the content")
		}
		full.Store(false)
		time.Sleep(2 * time.Second)
		if !k.Stored() {
			t.Error("the disk has the content, and Stored does not say so")
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "three" {
			t.Errorf("got %q, %v, want the newest content", got, err)
		}
		full.Store(true)
		_ = k.Write([]byte("four"))
		k.Close()
		if err := k.Write([]byte("five")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("after Close: got %v", err)
		}
	})
}
