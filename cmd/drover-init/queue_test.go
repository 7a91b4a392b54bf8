package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/node/cmdline"
	"drover/node/console"
	"drover/node/report"
	"drover/pools/boots"
)

// The position in the queue is on the console and in the record of the boot, and the
// wait extends the time limit of the boot.
func TestQueueing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, events fixture.Log
		start := time.Now()
		con := console.New(&out, func() time.Duration { return time.Since(start) })
		b := &boot{con: con, rep: &report.Reporter{Uptime: fixedUptime, Send: func(_ context.Context, e boots.Event) error {
			events.Printf("%s %s", e.Step, e.Detail)
			return nil
		}}, args: cmdline.Args{Timeout: time.Minute}, step: boots.StepImage}
		ended := make(chan time.Time, 1)
		b.ends = []*time.Timer{time.AfterFunc(time.Minute, func() { ended <- time.Now() })}
		b.rep.Start(func(f func()) { f() })
		defer b.rep.Stop()
		q := &queueing{boot: b}
		for _, n := range []int{37, 37, 2} {
			time.Sleep(50 * time.Second)
			q.moved(n, 50*time.Second)
		}
		synctest.Wait()
		con.Close()
		if got := out.String(); strings.Count(got, "waiting for the image: place 37") != 1 || strings.Count(got, "place 2") != 1 {
			t.Errorf("console: got %s", got)
		}
		if got := events.String(); got != "queued place 37\n" {
			t.Errorf("events: got %s", got)
		}
		if q.waited != 150*time.Second {
			t.Errorf("got %v in the queue, want 150s", q.waited)
		}
		if got := (<-ended).Sub(start); got != 210*time.Second {
			t.Errorf("the boot ended after %v, want 210s: the time in the queue does not count", got)
		}
	})
}

// TestStepHangs: a step that does not see the end of the boot does not keep it from reporting
// that.
func TestStepHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &boot{con: console.New(&fixture.Log{}, fixedUptime)}
		defer b.con.Close()
		if err := b.do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("a step: got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }); err != context.DeadlineExceeded {
			t.Errorf("a step that sees the end: got %v", err)
		}
		hang := make(chan struct{})
		defer close(hang)
		if err := b.do(ctx, func(context.Context) error { <-hang; return nil }); err == nil || !strings.HasPrefix(err.Error(), "it hangs") {
			t.Errorf("a step that hangs: got %v", err)
		}
	})
}
