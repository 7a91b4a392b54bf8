package bmc_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"drover/hardware/bmc"
)

func unknown() ([]string, error) { return nil, nil }

// A new pin replaces the file in one step, so that a full disk or a power failure leaves no part of
// a line. The file keeps its mode, and a link stays one.
func TestPinIsWrittenAtOnce(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("# keys"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &bmc.Pins{Path: link}
	if _, err := p.Check("10.1.0.1", "SHA256:x", "10.1.0.1 x", unknown); err != nil {
		t.Fatal(err)
	}
	after, err := os.Lstat(file)
	if err != nil || os.SameFile(before, after) || after.Mode() != before.Mode() {
		t.Errorf("got %v, %v, want another file of mode %s", after, err, before.Mode())
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is now %v, %v", info, err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "# keys\n10.1.0.1 x\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A file of pins that is none, such as /dev/null, is written to, and not replaced.
func TestPinsInADevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := &bmc.Pins{Path: path}
	if _, err := p.Check("10.1.0.1", "SHA256:x", "10.1.0.1 x", unknown); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Fatalf("it is now %v, %v", info, err)
	}
	b := make([]byte, 100)
	if n, err := f.Read(b); err != nil || string(b[:n]) != "10.1.0.1 x\n" {
		t.Errorf("got %q, %v", b[:n], err)
	}
}
