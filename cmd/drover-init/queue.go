package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drover/node/console"
	"drover/pools/boots"
)

// queueing is a node's wait for its turn to fetch the image. The wait is no failure, and
// does not count against the timeout of the boot: a reboot would only lose the position.
type queueing struct {
	boot   *boot
	place  int // the last position that the server sent
	waited time.Duration
}

// moved records a new position in the queue, and the time that the node waited, including
// the pause that follows.
func (q *queueing) moved(place int, spent time.Duration) {
	if q.place == 0 {
		q.boot.rep.Report(boots.StepQueued, fmt.Sprintf("place %d", place))
	}
	if place != q.place {
		q.boot.con.Printf("image", "waiting for the image: place %d", place)
	}
	q.place = place
	q.waited += spent
	q.boot.extend(spent)
}

// limit ends the boot after some time: expire reports the failure, and later the
// watchdog reboots.
func (b *boot) limit(left time.Duration, expire func()) {
	b.ends = []*time.Timer{
		time.AfterFunc(left, expire),
		time.AfterFunc(left+watchdogDelay, func() {
			b.con.Printf("watchdog", "no end after %.0f s, rebooting", console.Uptime().Seconds())
			b.con.Flush(time.Second)
			reboot()
		}),
	}
}

// hangLimit is the time that a step has to return when the boot has ended. With failDelay it is
// below watchdogDelay.
const hangLimit = 5 * time.Second

// do runs a step. One that waits in the kernel, as for a disk, does not see the end of ctx: it is
// left behind, so that the boot reports where it hung before it reboots.
func (b *boot) do(ctx context.Context, step func(context.Context) error) error {
	done := make(chan error, 1)
	go guard(b.con, func() { done <- step(ctx) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(hangLimit):
		return errors.New("it hangs: the kernel does not answer, which most often is a disk or a driver; its messages on the console say more")
	}
}

// extend moves the end of the boot to a later time.
func (b *boot) extend(by time.Duration) {
	b.args.Timeout += by
	left := max(b.args.Timeout-b.con.Uptime(), time.Second)
	for i, t := range b.ends {
		// A timer that has fired has ended the boot.
		if t.Stop() {
			t.Reset(left + time.Duration(i)*watchdogDelay)
		}
	}
}
