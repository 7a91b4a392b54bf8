package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover/cmd/drover-init/cmdline"
	"drover/cmd/drover-init/rootfs"
	"drover/pools/boots"
)

const (
	// failDelay is how long an error stays on the screen before the reboot.
	failDelay = 10 * time.Second
	// watchdogGrace is how long after the timeout the boot may take to report
	// that it gave up, before the watchdog reboots without a word more.
	watchdogGrace = 20 * time.Second

	panicFile = "/proc/sys/kernel/panic"
)

// bootNode is process 1. It does not return: it becomes the node's own init, or
// reboots.
func bootNode() {
	earlyErr := rootfs.MountKernel()
	openConsole()
	con := newConsole(os.Stdout, uptime)
	guard(con, func() {
		b := &boot{con: con, rep: &reporter{Uptime: uptime}, step: boots.StepInit, random: collectRandom()}
		b.rep.Notice = func(e boots.Event, err error) {
			con.printf("report", "error: event %q not reported: %v; going on", e.Step, err)
		}
		b.fail(b.start(earlyErr))
	})
}

// start reads the command line, sets the limits and runs the boot.
func (b *boot) start(earlyErr error) error {
	b.con.printf("init", "drover-init %s", version())
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
	left := max(b.args.Timeout-uptime(), time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.limit(left, cancel)
	return b.run(ctx)
}

// fail says what went wrong, here and at home, and reboots.
func (b *boot) fail(err error) {
	wait := failDelay
	if b.args.Shell {
		wait = max(wait, b.args.Timeout-uptime())
	}
	b.con.printf("error", "%s: %v", b.step, err)
	b.con.printf("error", "this boot is over: rebooting in %.0f s", wait.Seconds())
	b.rep.fail(b.step, fmt.Errorf("%w; rebooting in %.0f s", err, wait.Seconds()))
	time.Sleep(wait)
	b.con.printf("init", "rebooting")
	b.con.flush(time.Second)
	reboot()
}

// guard runs f. When f panics it says so and reboots: the end of process 1 would
// stop the kernel, and with it the node, until someone walks there.
func guard(con *console, f func()) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		con.printf("error", "drover-init has a bug: %v", r)
		con.printf("error", "%s", strings.TrimSpace(string(debug.Stack())))
		con.printf("error", "rebooting in %.0f s", failDelay.Seconds())
		con.flush(failDelay)
		time.Sleep(failDelay)
		reboot()
	}()
	f()
}

// openConsole makes the console our output. The kernel opens it for process 1
// only if the initramfs has the device, which devtmpfs has now.
func openConsole() {
	f, err := os.OpenFile("/dev/console", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return // a machine without a console: the events must do
	}
	for fd := range 3 {
		_ = unix.Dup3(int(f.Fd()), fd, 0) // as above
	}
	_ = f.Close()
}

// rebootOnPanic makes the kernel reboot should it panic, if it would hang, and
// returns the old setting when it changed it.
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

// reboot restarts the machine. It does not return.
func reboot() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
	os.Exit(1) // not allowed to: then the kernel's panic will do it
}
