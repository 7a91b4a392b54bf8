package backup_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"drover/state/backup"
	"drover/state/wal"
)

// TestBomb: a small file that unpacks to hundreds of megabytes is refused, and takes no memory.
func TestBomb(t *testing.T) {
	const size = 200 << 20
	path := pack(t, nil, wal.File{Name: "drover.db", Data: []byte("drover state, format 3\n")}, wal.File{Name: "drover.1.log", Data: make([]byte, size)})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := backup.Read(path)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "it unpacks to more than a state has") {
		t.Errorf("got %v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > size/10 {
		t.Errorf("it took %d bytes", n)
	}
}

// TestMemory: a backup that is as large as its file is not in memory either.
func TestMemory(t *testing.T) {
	_, small := small(t)
	text, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 40<<20)
	_, _ = rand.Read(large) // never fails
	path := pack(t, nil, wal.File{Name: "drover.db", Data: []byte("drover state, format 3\n")}, wal.File{Name: "large", Data: large})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b := must(backup.Read(path))
	dir := t.TempDir()
	if err := b.Stage(dir); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("it took %d bytes", n)
	}
	if got, err := os.Stat(filepath.Join(dir, backup.Pending)); err != nil || got.Size() == 0 {
		t.Errorf("got %v, %v", got, err)
	}
	// Another file in its place after the check is no backup that was checked.
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Stage(dir); err == nil || !strings.Contains(err.Error(), "changed since it was checked") {
		t.Errorf("another file: got %v", err)
	}
	if _, err := b.Try(dir); err == nil {
		t.Error("another file: no error")
	}
}
