package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"drover/node/cmdline"
	"drover/pools"
)

func TestRescueByCommandLine(t *testing.T) {
	for line, want := range map[string]bool{
		goodArgs: false, goodArgs + " drover.rescue=1": true, goodArgs + " drover.rescue=0": false,
		goodArgs + " drover.rescue=1 drover.rescue=0": false, goodArgs + " -- drover.rescue=1": false,
	} {
		if got, err := cmdline.Parse(line); err != nil || got.Rescue != want {
			t.Errorf("%s: got %v, %v, want %v", line, got.Rescue, err, want)
		}
	}
	if err := (&boot{}).rescue(context.Background()); err != nil {
		t.Errorf("a boot that is none: %v", err)
	}
}

func TestDebugShellByCommandLine(t *testing.T) {
	for line, want := range map[string]pools.DebugShell{
		goodArgs: "", goodArgs + " drover.debug=on-failure": pools.ShellOnFailure, goodArgs + " drover.debug=always": pools.ShellAlways,
	} {
		got, err := cmdline.Parse(line)
		if err != nil || got.Debug != want {
			t.Errorf("%s: got %q, %v, want %q", line, got.Debug, err, want)
		}
		if want != pools.ShellAlways {
			if err := (&boot{args: got}).debugShell(context.Background()); err != nil {
				t.Errorf("%s: a shell before the root's init: %v", line, err)
			}
		}
	}
}

func TestFindShell(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bin/bash"), 0o755); err != nil { // a directory is no shell
		t.Fatal(err)
	}
	if _, err := findShell(root); err == nil || err.Error() != "no rescue shell: the image has none of /bin/bash, /bin/sh, /bin/busybox" {
		t.Errorf("got %v", err)
	}
	for name, want := range map[string][]string{"busybox": {"/bin/busybox", "sh", "-i"}, "sh": {"/bin/sh", "-i"}} {
		file := filepath.Join(root, "bin", name)
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := findShell(root); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// The shell has a terminal of its own.
func TestRescueShell(t *testing.T) {
	master, name := openPTY(t)
	root := t.TempDir()
	for _, dir := range []string{"sys/class/tty/console", "dev"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "sys/class/tty/console/active"), []byte("tty0 ttyS0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name, filepath.Join(root, "dev/ttyS0")); err != nil {
		t.Fatal(err)
	}
	tty, err := openTTY(root)
	if err != nil {
		t.Fatal(err)
	}
	// The terminal echoes the input; the quotes distinguish it from the output.
	if _, err := master.WriteString("test -t 0 && tty && : </dev/tty && echo it is its \"\"own; exit 3\n"); err != nil {
		t.Fatal(err)
	}
	if err := runShell([]string{"/bin/sh", "-i"}, tty); err != nil {
		t.Error(err)
	}
	if err := runShell([]string{"/no/such/shell"}, tty); err == nil {
		t.Errorf("a shell that is not there: got %v", err)
	}
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(master) // ends with EIO when the other end is closed
	if text := string(said); !strings.Contains(text, "it is its own") {
		t.Errorf("the terminal shows %q", text)
	}
}

// openPTY returns the master end of a pseudo-terminal, and the name of the other.
func openPTY(t *testing.T) (*os.File, string) {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return f, filepath.Join("/dev/pts", strconv.Itoa(n))
}
