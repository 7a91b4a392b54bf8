package server

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowWriter counts the writes that it takes. It takes none until free is
// closed, if there is one.
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
			t.Errorf("a line after a rest: got %q at once", got)
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
		if !strings.HasSuffix(to.text.String(), "last\nafter the end\n") {
			t.Errorf("got %q at the end", to.text.String())
		}
	})
}

// A log that nobody reads holds its writers up, and not the memory.
func TestLogWriterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := slowWriter{free: make(chan struct{})} // nobody reads
		w := NewLogWriter(&to)
		line := []byte(strings.Repeat("x", 64<<10))
		var written atomic.Int64
		go func() {
			for range 100 {
				_, _ = w.Write(line)
				written.Add(1)
			}
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, limit := written.Load(), int64(2*maxLog/len(line)+3); got > limit {
			t.Errorf("%d lines were taken, want %d at most", got, limit)
		}
		close(to.free)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.Close()
		if got := to.text.Len(); written.Load() != 100 || got != 100*len(line) {
			t.Errorf("%d lines were taken and %d bytes written", written.Load(), got)
		}
	})
}
