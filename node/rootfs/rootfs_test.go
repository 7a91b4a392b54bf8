package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"

	"golang.org/x/sys/unix"
)

const meminfo = `MemTotal:         468416 kB
MemFree:          300000 kB
MemAvailable:     370400 kB
HugePages_Total:       0
`

func TestReadMemory(t *testing.T) {
	got, err := readMemory(strings.NewReader(meminfo))
	if want := (Memory{Total: 468416 << 10, Available: 370400 << 10}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "MemTotal: 5 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n", "MemTotal: 5 MB\nMemAvailable: 5 MB\n"} {
		if _, err := readMemory(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

func TestMemoryFits(t *testing.T) {
	m := Memory{Total: 512 << 20, Available: 400 << 20}
	for _, tt := range []struct {
		more int64
		ok   bool
	}{{0, true}, {304 << 20, true}, {304<<20 + 1, false}, {1 << 40, false}} {
		if err := m.Fits(tt.more); (err == nil) != tt.ok {
			t.Errorf("fits(%d): got %v, want ok %v", tt.more, err, tt.ok)
		}
	}
}

func TestMemoryJoins(t *testing.T) {
	for available, ok := range map[int64]bool{350 << 20: true, 350<<20 - 1: false, 200 << 20: false, 4 << 30: true} {
		err := Memory{Total: 1 << 30, Available: available}.Joins()
		if (err == nil) != ok {
			t.Errorf("%d bytes: got %v, want ok %v", available, err, ok)
		}
	}
	err := Memory{Total: 1 << 30, Available: 200 << 20}.Joins()
	if err == nil || !strings.Contains(err.Error(), "need about 350 MB, but beside the image only 200 of 1024 MB are available") {
		t.Errorf("got %v, want the numbers", err)
	}
}

func TestEmpty(t *testing.T) {
	root := fixture.Tree(t, map[string]string{
		"init": "x", "lib/modules/6.1.0/a.ko": "x", "bin": "->usr/bin", "usr/bin/sh": "x", "mnt/root/etc/hostname": "the new root's",
	})
	outside := fixture.Tree(t, map[string]string{"keep": "x"})
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	keep := filepath.Join(root, "mnt/root")
	if err := unix.Mount("drover-test", keep, "tmpfs", 0, "size=1m"); err != nil {
		fixture.Missing(t, fmt.Errorf("needs root, to mount: %w", err))
	}
	defer func() {
		if err := unix.Unmount(keep, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(keep, "hostname"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := empty(root); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "mnt" {
		t.Errorf("left: got %q (%v), want mnt alone", left, err)
	}
	for _, path := range []string{filepath.Join(keep, "hostname"), filepath.Join(outside, "keep")} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("was to be kept: %v", err)
		}
	}
}

func TestIsRAMRoot(t *testing.T) {
	if IsRAMRoot("/proc") {
		t.Error("/proc is taken for an initramfs")
	}
	if IsRAMRoot("/no/such/directory") {
		t.Error("a directory that is not there is taken for an initramfs")
	}
}
