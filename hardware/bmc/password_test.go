package bmc_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover/hardware/bmc"
)

// Low finding: a FIFO in the place of a file that the config names was waited for without
// end.
func TestPasswordFileIsAFIFO(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bmc.ReadPassword(file); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}
