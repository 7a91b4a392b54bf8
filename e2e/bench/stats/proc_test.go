package stats_test

import (
	"os"
	"testing"
	"time"

	"drover/e2e/bench/stats"
)

func TestParseStat(t *testing.T) {
	stat := "17 (a name) with 9 9 (9) S 1 17 17 0 -1 4194560 900 0 0 0 120 30 4 6 20 0 3 0 100 2000 300 1\n"
	got, err := stats.ParseStat([]byte(stat))
	if err != nil || got != 1600*time.Millisecond {
		t.Errorf("got %s, %v; want 1.6 s: user, system, and of children", got, err)
	}
	for _, bad := range []string{"", "17 (x) S 1 2", "17 (x) S 1 17 17 0 -1 4194560 900 0 0 0 a 30 4 6 20"} {
		if got, err := stats.ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q: got %s, want an error", bad, got)
		}
	}
}

func TestParseBusy(t *testing.T) {
	stat := "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 20 30 5000 700 1 2 3 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\n"
	got, err := stats.ParseBusy(stat, "0")
	if err != nil || got != 1560*time.Millisecond {
		t.Errorf("got %s, %v; want 1.56 s: neither idle nor waiting for the disk", got, err)
	}
	for _, bad := range []string{"", stat[:30], "cpu0 a 20 30 5000 700 1 2 3 0 0"} {
		if got, err := stats.ParseBusy(bad, "0"); err == nil {
			t.Errorf("%q: got %s, want an error", bad, got)
		}
	}
}

// TestRunTime: the work of a process is in its run time.
func TestRunTime(t *testing.T) {
	before, err := stats.RunTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for { // until it counts, however slow this host is
		now, err := stats.RunTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now-before > time.Millisecond {
			return
		}
	}
}
