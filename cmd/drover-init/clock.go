package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// farOff is how much a clock may differ from the server's: what is less is left
// to NTP. A node whose clock is behind takes its cluster's certificates for not
// yet valid; they are dated five minutes back when they are made.
const farOff = time.Minute

// written is when this was written. A server whose clock shows an earlier time
// needs one itself; one of an older version tells none.
var written = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// isFarOff reports whether a clock that shows now has to be set to the server's.
func isFarOff(now, server time.Time) bool {
	return server.After(written) && server.Sub(now).Abs() > farOff
}

// setClock puts the clock right when it is far off, as that of a board is whose
// battery is dead: the node's own NTP may come too late for its join, or never.
// It goes on with a wrong clock, since a cluster may take the node all the same.
func (b *boot) setClock(context.Context) error {
	was, server := time.Now(), b.config.Time
	if !isFarOff(was, server) {
		return nil
	}
	ts := unix.Timespec{Sec: server.Unix(), Nsec: int64(server.Nanosecond())}
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		b.con.printf("clock", "error: it shows %s, the server's %s, and cannot be set: %v; going on, this node may be unable to join",
			was.UTC().Format(time.DateTime), server.UTC().Format(time.DateTime), err)
		return nil
	}
	b.con.printf("clock", "it showed %s: set to the server's %s UTC", was.UTC().Format(time.DateTime), server.UTC().Format(time.DateTime))
	return nil
}
