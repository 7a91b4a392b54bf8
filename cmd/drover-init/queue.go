package main

import (
	"fmt"
	"time"

	"drover/pools/boots"
)

// queueing is a node's wait for its turn to fetch the image. It is no failure,
// and the time that it takes does not count against the boot: in a storm of
// a thousand machines, a reboot would only lose the place.
type queueing struct {
	*boot
	place  int // the last that was told
	waited time.Duration
}

// told takes in a place that the server has told after some time, with the
// pause that follows.
func (q *queueing) told(place int, spent time.Duration) {
	if q.place == 0 {
		q.rep.report(boots.StepQueued, fmt.Sprintf("place %d", place))
	}
	if place != q.place {
		q.con.printf("image", "waiting for the image: place %d", place)
	}
	q.place = place
	q.waited += spent
	q.putOff(spent)
}

// limit has the boot end after some time, with its last word by the watchdog.
func (b *boot) limit(left time.Duration, expire func()) {
	b.ends = []*time.Timer{
		time.AfterFunc(left, expire),
		time.AfterFunc(left+watchdogGrace, func() {
			b.con.printf("watchdog", "no end after %.0f s, rebooting", uptime().Seconds())
			b.con.flush(time.Second)
			reboot()
		}),
	}
}

// putOff has the boot end later.
func (b *boot) putOff(by time.Duration) {
	b.args.Timeout += by
	left := max(b.args.Timeout-b.con.uptime(), time.Second)
	for i, t := range b.ends {
		// One that has fired already has ended the boot.
		if t.Stop() {
			t.Reset(left + time.Duration(i)*watchdogGrace)
		}
	}
}
