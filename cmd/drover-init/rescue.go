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

	"drover/node/rootfs"
	"drover/pools"
)

// shells are the possible rescue shells, in the order of preference.
var shells = [][]string{{"/bin/bash", "-i"}, {"/bin/sh", "-i"}, {"/bin/busybox", "sh", "-i"}}

// rescue runs a shell of the image if the command line has drover.rescue=1. The image is
// the root and the network is up. The node's config, and with it every secret, is not
// fetched. There is no time limit: rescue ends with the shell.
func (b *boot) rescue(context.Context) error {
	if !b.args.Rescue {
		return nil
	}
	if err := b.shell("a rescue shell runs on %s, as asked for; leave it with exit, and the machine reboots"); err != nil {
		return err
	}
	return errRescued
}

// errRescued ends a boot after its rescue shell.
var errRescued = errors.New("the rescue shell was left")

// debugShell runs a shell before the root's init if the node's tags ask for that.
func (b *boot) debugShell(context.Context) error {
	if b.args.Debug != pools.ShellAlways {
		return nil
	}
	return b.shell("debugShell: a shell runs on %s; leave it with exit, and the boot goes on")
}

// shell runs a shell on the console until it ends, without a time limit. It reports said,
// with the name of the terminal. It ignores the exit code, which is that of the last
// command.
func (b *boot) shell(said string) error {
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
	said = fmt.Sprintf(said, tty.Name())
	b.con.Printf("rescue", "%s", said)
	b.rep.Fail(b.step, errors.New(said))
	b.con.Flush(flushLimit)
	return runShell(shell, tty)
}

func runShell(shell []string, tty *os.File) error {
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + rootfs.SearchPath, "HOME=/root", "TERM=linux", `PS1=rescue:\w# `}
	// Ctrl-C and job control need a session with a controlling terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("shell: %w", err)
	}
	_ = cmd.Wait()
	return nil
}

// findShell returns the first shell that exists below root.
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

// openTTY opens the terminal behind /dev/console, which itself cannot be a controlling
// terminal. Of several consoles it opens the last.
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
