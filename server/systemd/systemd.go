// Package systemd says to systemd how the server is, if systemd runs it as a service of
// Type=notify: see deploy/drover.service. Without systemd its functions do nothing.
package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"drover/internal/wait"
)

// Ready says that the server serves. Units that are ordered after it start then.
func Ready() error { return notify(daemon.SdNotifyReady) }

// Stopping says that the server ends on its own. Transfers in progress have the time grace:
// systemd waits for them, and a moment longer, even where that is more than TimeoutStopSec.
func Stopping(grace time.Duration) error {
	return notify(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d", daemon.SdNotifyStopping, (grace + rest).Microseconds()))
}

// rest is the time in which a server ends after the last transfer.
const rest = 15 * time.Second

// A start may take longest. systemd hears every few seconds that it goes on, and waits for
// patience each time.
const (
	longest  = 15 * time.Minute
	patience = 30 * time.Second
)

// Starting says that a start goes on, the first one or one anew with a backup, until end is
// called: systemd otherwise ends it after TimeoutStartSec, and one anew after the period of its
// watchdog. A start that hangs is ended all the same, after a quarter of an hour.
func Starting() (end func()) {
	every := patience / 3
	if period, err := daemon.SdWatchdogEnabled(false); err == nil && period > 0 {
		every = min(every, period/3)
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for goesOn := fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\n%s", patience.Microseconds(), daemon.SdNotifyWatchdog); ctx.Err() == nil; {
			if notify(goesOn) != nil || wait.Sleep(ctx, every) != nil {
				return // Ready reports that systemd does not hear
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

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
