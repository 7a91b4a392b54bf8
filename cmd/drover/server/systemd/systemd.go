// Package systemd says to systemd how the server is, if systemd runs it as a service of
// Type=notify: see deploy/drover.service. Without systemd its functions do nothing.
package systemd

import (
	"context"
	"fmt"

	"github.com/coreos/go-systemd/v22/daemon"

	"drover/pools/wait"
)

// Ready says that the server serves. Units that are ordered after it start then.
func Ready() error { return notify(daemon.SdNotifyReady) }

// Stopping says that the server ends on its own.
func Stopping() error { return notify(daemon.SdNotifyStopping) }

// Watch gives a sign of life three times in each period of the watchdog, until ctx ends,
// as long as answer returns. systemd ends a server that gives none for a whole period, by
// SIGABRT: its log then has what each goroutine waits for.
func Watch(ctx context.Context, answer func()) error {
	period, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("period of systemd's watchdog: %w", err)
	}
	if period == 0 {
		return nil
	}
	for {
		answer()
		if err := notify(daemon.SdNotifyWatchdog); err != nil {
			return err
		}
		if wait.Sleep(ctx, period/3) != nil {
			return nil
		}
	}
}

func notify(state string) error {
	if _, err := daemon.SdNotify(false, state); err != nil {
		return fmt.Errorf("tell systemd %s: %w", state, err)
	}
	return nil
}
