package server

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// slowWriter counts the writes. If free is set, a write blocks until it is closed.
type slowWriter struct {
	free   chan struct{}
	text   strings.Builder
	writes int
}

func (w *slowWriter) Write(b []byte) (int, error) {
	if w.free != nil {
		<-w.free
	}
	w.writes++
	return w.text.Write(b)
}

func TestLogWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to slowWriter
		w := NewLogWriter(&to)
		defer w.Close()
		fmt.Fprintln(w, "alone")
		synctest.Wait()
		if got := to.text.String(); got != "alone\n" {
			t.Errorf("a line after a pause: got %q at once", got)
		}
		for n := range 100 {
			fmt.Fprintln(w, n)
		}
		time.Sleep(2 * logPause)
		synctest.Wait()
		if to.writes != 2 || !strings.HasSuffix(to.text.String(), "98\n99\n") {
			t.Errorf("a storm: got %d writes, want 2 in all", to.writes)
		}
		fmt.Fprintln(w, "last")
		w.Close()
		fmt.Fprintln(w, "after the end")
		if !strings.HasSuffix(to.text.String(), "last\n") || w.Lost() != 1 {
			t.Errorf("got %q at the end, and %d lines lost", to.text.String(), w.Lost())
		}
	})
}

// TestJSONLog: durations are seconds.
func TestJSONLog(t *testing.T) {
	var to slowWriter
	w := NewLogWriter(&to)
	log, err := NewLogger(w, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("request", "took", 1500*time.Millisecond)
	w.Close()
	if got := to.text.String(); !strings.Contains(got, `"took":1.5}`) {
		t.Errorf("got %s", got)
	}
}

// A log that nobody reads blocks no caller and takes a bounded amount of memory. When
// it is read again, it has the number of missing lines (finding H9).
func TestLogWriterNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := slowWriter{free: make(chan struct{})} // nobody reads
		w := NewLogWriter(&to)
		line := []byte(strings.Repeat("x", 64<<10-1) + "\n")
		for range 100 { // synctest reports a deadlock if one of them waits
			_, _ = w.Write(line)
		}
		close(to.free)
		synctest.Wait()
		w.Close()
		got := to.text.String()
		written := strings.Count(got, "x\n")
		if most := 2 * maxLog / len(line); written == 0 || written > most {
			t.Errorf("%d lines were written, want some and at most %d", written, most)
		}
		if want := fmt.Sprintf("%d lines of the log were dropped", 100-written); !strings.Contains(got, want) {
			t.Errorf("%q is not in the log", want)
		}
		if w.Lost() != uint64(100-written) {
			t.Errorf("got %d lines lost, want %d", w.Lost(), 100-written)
		}
	})
}

// failingWriter fails while it is full.
type failingWriter struct {
	strings.Builder
	full atomic.Bool
}

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.full.Load() {
		n := min(len(b), 7) // a write may be cut short
		w.Builder.Write(b[:n])
		return n, syscall.ENOSPC
	}
	return w.Builder.Write(b)
}

// Lines that cannot be written, as on a full disk, are counted, and reported when the
// writer works again (findings H9, M3).
func TestLogWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to failingWriter
		w := NewLogWriter(&to)
		line := func(text string) {
			fmt.Fprintln(w, text)
			time.Sleep(2 * logPause)
		}
		to.full.Store(true)
		for range 10 {
			line("does not fit")
		}
		to.full.Store(false)
		line("fits")
		w.Close()
		if got := to.String(); !strings.HasSuffix(got, "fits\n10 lines of the log were dropped\n") {
			t.Errorf("got %q", got)
		}
		if w.Lost() != 10 {
			t.Errorf("got %d lines lost, want 10", w.Lost())
		}
	})
}

// A program whose log is never read again can still end.
func TestLogWriterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := slowWriter{free: make(chan struct{})}
		w := NewLogWriter(&to)
		fmt.Fprintln(w, "a line")
		w.Close()
		close(to.free)
		time.Sleep(2 * logPause)
	})
}
