package lograte_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/internal/lograte"
)

// A flood of lines is bounded, kind by kind, and its size is in the log afterwards
// (finding M2).
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := lograte.Limiter{Log: slog.New(slog.NewTextHandler(&log, nil))}
		allowed := map[string]int{}
		for range 60_000 { // 1000 lines a second for a minute
			if l.Allow(slog.LevelWarn, "no address") {
				allowed["no address"]++
			}
			time.Sleep(time.Millisecond)
		}
		if l.Allow(slog.LevelInfo, "offered") {
			allowed["offered"]++
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := allowed["no address"]; n < 300 || n > 320 {
			t.Errorf("got %d lines in a minute, want 20 and 5 a second", n)
		}
		if allowed["offered"] != 1 {
			t.Error("a line of another kind was left out")
		}
		left := 0
		for line := range strings.Lines(log.String()) {
			var n int
			if _, rest, ok := strings.Cut(line, `level=WARN msg="lines of one kind were left out" kind="no address" lines=`); ok {
				if _, err := fmt.Sscan(rest, &n); err != nil {
					t.Fatal(err)
				}
				left += n
				continue
			}
			t.Errorf("got the line %s", line)
		}
		if left+allowed["no address"] != 60_000 {
			t.Errorf("%d lines are allowed and %d are counted, want 60000 in all", allowed["no address"], left)
		}
	})
}

// Lines below the level of the log are neither allowed nor counted.
func TestLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := lograte.Limiter{Log: slog.New(slog.NewTextHandler(&log, nil)), PerSecond: 100}
		for range 1000 {
			if l.Allow(slog.LevelDebug, "renewed") {
				t.Fatal("a line at level debug is allowed")
			}
		}
		n := 0
		for range 1000 {
			if l.Allow(slog.LevelInfo, "renewed") {
				n++
			}
		}
		if n != 100 {
			t.Errorf("got %d lines at once, want those of a second: 100", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := `kind=renewed lines=900 within=10s`; strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), want) {
			t.Errorf("got the log %q, want one line with %s", log.String(), want)
		}
	})
}

// The memory is bounded even if the kinds are not.
func TestManyKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lograte.Limiter
		n := 0
		for i := range 10_000 {
			if l.Allow(slog.LevelInfo, fmt.Sprint(i)) {
				n++
			}
		}
		if n < 64 || n > 100 {
			t.Errorf("got %d lines of 10000 kinds", n)
		}
		time.Sleep(time.Minute) // for the timer
	})
}
