package wal_test

import (
	"os"
	"path/filepath"
	"testing"

	"drover/state/wal"
)

// Data is made durable again and again, also of another file, and an error is
// reported.
func TestDatasync(t *testing.T) {
	sync, aio := wal.Datasync(t)
	t.Logf("by AIO: %t", aio)
	for _, name := range []string{"a", "b"} {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := f.WriteString("lease"); err != nil {
				t.Fatal(err)
			}
			if err := sync(f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.Close()
		if err := sync(f); err == nil {
			t.Error("a closed file is durable")
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := sync(w); err == nil {
		t.Error("a pipe is durable")
	}
}
