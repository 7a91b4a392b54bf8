package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Time limits of the parts of a reboot. The kernel tells the drivers of all devices to stop,
// and the caches of a disk can take some time for that.
const (
	syncLimit  = 5 * time.Second
	stopLimit  = time.Minute
	resetLimit = 5 * time.Second
)

// reboot restarts the machine, also if a disk does not answer. It does not return.
func reboot() {
	restart(
		unix.Sync,
		func() { _ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) },
		func() { _ = os.WriteFile("/proc/sysrq-trigger", []byte("b"), 0) }, // at once, see admin-guide/sysrq
	)
	os.Exit(1) // none of them is permitted: the kernel panics, and reboots
}

// restart calls the functions in turn. It does not wait for one that hangs.
func restart(sync, stop, reset func()) {
	limited(syncLimit, sync)
	limited(stopLimit, stop)
	limited(resetLimit, reset)
}

// limited calls f, and returns at its end or after the limit. No signal ends a system call
// that waits for a disk.
func limited(limit time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
