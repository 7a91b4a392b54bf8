package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"drover/cmd/drover-init/rootfs"
)

// shells are the programs that may be the rescue shell, in the order of
// preference.
var shells = [][]string{{"/bin/bash", "-i"}, {"/bin/sh", "-i"}, {"/bin/busybox", "sh", "-i"}}

// rescue stops the boot in a shell of the image, when the command line says so.
// The image is the root and the network is up; the node's config, and with it
// every secret, was not fetched. There is no end to it but the shell's.
func (b *boot) rescue(context.Context) error {
	if !b.args.Rescue {
		return nil
	}
	shell, err := findShell("/")
	if err != nil {
		return err
	}
	tty, err := openTTY("/")
	if err != nil {
		return err
	}
	defer tty.Close()
	for _, t := range b.ends {
		t.Stop()
	}
	said := fmt.Sprintf("a rescue shell runs on %s, as asked for; leave it with exit, and the machine reboots", tty.Name())
	b.con.printf("rescue", "%s", said)
	b.rep.fail(b.step, errors.New(said))
	b.con.flush(flushLimit)
	return runShell(shell, tty)
}

// errRescued ends a boot that was a rescue.
var errRescued = errors.New("the rescue shell was left")

// runShell runs the shell until it ends. How it ended is not told apart: people
// leave a shell with whatever its last command returned.
func runShell(shell []string, tty *os.File) error {
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + rootfs.SearchPath, "HOME=/root", "TERM=linux", `PS1=rescue:\w# `}
	// A session of its own with the terminal, so that Ctrl-C and job control
	// work.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("rescue shell: %w", err)
	}
	_ = cmd.Wait()
	return errRescued
}

// findShell returns the first shell that is below root.
func findShell(root string) ([]string, error) {
	var names []string
	for _, s := range shells {
		if info, err := os.Stat(filepath.Join(root, s[0])); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return s, nil
		}
		names = append(names, s[0])
	}
	return nil, fmt.Errorf("no rescue shell: the image has none of %s", strings.Join(names, ", "))
}

// openTTY opens the terminal behind /dev/console: that device itself cannot be
// the terminal of a session. Of several consoles the last one is it.
func openTTY(root string) (*os.File, error) {
	active, err := os.ReadFile(filepath.Join(root, "sys/class/tty/console/active"))
	names := strings.Fields(string(active))
	if err == nil && len(names) > 0 {
		f, err := os.OpenFile(filepath.Join(root, "dev", filepath.Base(names[len(names)-1])), os.O_RDWR|syscall.O_NOCTTY, 0)
		if err == nil {
			return f, nil
		}
	}
	f, err := os.OpenFile(filepath.Join(root, "dev/console"), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("no rescue shell: no console to run it on: %w", err)
	}
	return f, nil
}
