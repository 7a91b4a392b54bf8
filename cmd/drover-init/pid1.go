package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover/node/cmdline"
	"drover/node/console"
	"drover/node/report"
	"drover/node/rootfs"
	"drover/pools"
	"drover/pools/boots"
)

const (
	// failDelay is the time for which an error stays on the screen before the reboot.
	failDelay = 10 * time.Second
	// watchdogDelay is the time from the timeout of the boot to the reboot by the
	// watchdog. In between the boot reports its failure.
	watchdogDelay = 20 * time.Second

	panicFile = "/proc/sys/kernel/panic"
)

// bootNode boots the node as process 1. It does not return: the process becomes the
// init of the root image, or reboots.
func bootNode() {
	earlyErr := rootfs.MountKernel()
	openConsole()
	con := console.New(os.Stdout, console.Uptime)
	guard(con, func() {
		b := &boot{con: con, rep: report.New(con), step: boots.StepInit, random: collectRandom()}
		b.fail(b.start(earlyErr))
	})
}

// start reads the command line, starts the time limits and runs the boot.
func (b *boot) start(earlyErr error) error {
	b.con.Printf("init", "drover-init %s", version())
	b.args.Timeout = cmdline.DefaultTimeout
	if earlyErr != nil {
		return earlyErr
	}
	b.panicSysctl = rebootOnPanic()
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	if b.args, err = cmdline.Parse(string(line)); err != nil {
		return err
	}
	left := max(b.args.Timeout-console.Uptime(), time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.limit(left, cancel)
	return b.run(ctx)
}

// fail reports an error on the console and to the server, and reboots.
func (b *boot) fail(err error) {
	wait := failDelay
	if b.args.Shell {
		wait = max(wait, b.args.Timeout-console.Uptime())
	}
	b.con.Printf("error", "%s: %v", b.step, err)
	b.con.Printf("error", "this boot is over: rebooting in %.0f s", wait.Seconds())
	b.rep.Fail(b.step, fmt.Errorf("%w; rebooting in %.0f s", err, wait.Seconds()))
	if on := b.args.Debug; (on == pools.ShellOnFailure || on == pools.ShellAlways) && !errors.Is(err, errRescued) {
		if err := b.shell("the boot failed: a shell runs on %s; leave it with exit, and the machine reboots"); err != nil {
			b.con.Printf("error", "debugShell: %v", err)
		} else {
			wait = 0
		}
	}
	time.Sleep(wait)
	b.con.Printf("init", "rebooting")
	b.con.Flush(time.Second)
	reboot()
}

// guard runs f. If f panics, guard reports that and reboots: the end of process 1 would
// stop the kernel until a person resets the machine.
func guard(con *console.Console, f func()) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		con.Printf("error", "drover-init has a bug: %v", r)
		con.Printf("error", "%s", strings.TrimSpace(string(debug.Stack())))
		con.Printf("error", "rebooting in %.0f s", failDelay.Seconds())
		con.Flush(failDelay)
		time.Sleep(failDelay)
		reboot()
	}()
	f()
}

// openConsole makes the console standard output and error. The kernel opens it for
// process 1 only if the initramfs has the device; only devtmpfs has it.
func openConsole() {
	f, err := os.OpenFile("/dev/console", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return // a machine without a console has the events
	}
	for fd := range 3 {
		_ = unix.Dup3(int(f.Fd()), fd, 0) // as above
	}
	_ = f.Close()
}

// rebootOnPanic makes the kernel reboot after a panic, if it would hang. It returns the
// old setting if it changed it.
func rebootOnPanic() string {
	old, err := os.ReadFile(panicFile)
	if err != nil || strings.TrimSpace(string(old)) != "0" {
		return ""
	}
	if os.WriteFile(panicFile, []byte("10"), 0) != nil {
		return ""
	}
	return string(old)
}
