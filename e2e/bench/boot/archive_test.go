package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	main "drover/e2e/bench/boot"
	"drover/e2e/fixture"
)

// TestArchive: cpio can read the archive that the kernel gets.
func TestArchive(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		fixture.Missing(t, err)
	}
	for _, content := range []string{"", "a", "four", "[Unit]\nDescription=x\n"} {
		archive := main.Archive("bench-up.service", content)
		if len(archive)%4 != 0 {
			t.Errorf("%d bytes: what comes behind is not where the kernel looks for it", len(archive))
		}
		dir := t.TempDir()
		cmd := exec.Command("cpio", "--extract", "--quiet")
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(archive)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cpio: %v\n%s", err, out)
		}
		got, err := os.ReadFile(filepath.Join(dir, "bench-up.service"))
		if err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
}
