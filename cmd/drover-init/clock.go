package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// farOff is the tolerated difference between the node's clock and the server's; NTP
// corrects a smaller one. A node whose clock is behind rejects its cluster's
// certificates as not yet valid; they are dated five minutes back when they are made.
const farOff = time.Minute

// written is the date of this code. A server with an earlier time has a wrong clock.
var written = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// isFarOff reports whether the clock has to be set to the server's time.
func isFarOff(now, server time.Time) bool {
	return server.After(written) && server.Sub(now).Abs() > farOff
}

// setClock sets the clock to the server's time if it is far off, as after a dead battery:
// NTP may come too late for the join, or never. An error does not end the boot, since
// the cluster may accept the node with a wrong clock.
func (b *boot) setClock(context.Context) error {
	was, server := time.Now(), b.config.Time
	if !isFarOff(was, server) {
		return nil
	}
	ts := unix.Timespec{Sec: server.Unix(), Nsec: int64(server.Nanosecond())}
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		b.con.Printf("clock", "error: it shows %s, the server's %s, and cannot be set: %v; going on, this node may be unable to join",
			was.UTC().Format(time.DateTime), server.UTC().Format(time.DateTime), err)
		return nil
	}
	b.con.Printf("clock", "it showed %s: set to the server's %s UTC", was.UTC().Format(time.DateTime), server.UTC().Format(time.DateTime))
	return nil
}
