package server

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// logPause is the shortest time between two writes of the log. A line after a
	// quiet time is written at once; in a storm of requests, hundreds share a write.
	logPause = 25 * time.Millisecond

	// maxLog is the limit for bytes that wait to be written. Lines beyond it are
	// dropped and counted.
	maxLog = 1 << 20
)

// LogWriter writes a log to another writer, in a goroutine of its own. It never
// blocks the code that logs. When the other writer does not keep up (a stopped
// terminal, a full pipe) or fails (a full disk, a pipe without a reader), lines are lost,
// and a later line of the log has their number.
type LogWriter struct {
	to io.Writer
	// report renders the line with the number of lost lines.
	report func(lines int) []byte

	mu      sync.Mutex
	waiting []byte
	lost    int           // lines that no line of the log has reported yet
	total   uint64        // lines lost since the start
	wake    chan struct{} // there are lines to write; closed by Close
	closed  bool
	done    chan struct{}
}

// NewLogWriter returns a writer to to. Call [LogWriter.Close] at the end.
func NewLogWriter(to io.Writer) *LogWriter {
	w := &LogWriter{to: to, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.report = func(lines int) []byte { return fmt.Appendf(nil, "%d lines of the log were dropped\n", lines) }
	go w.run()
	return w
}

// Write queues one line. It returns at once and reports no error: a log has nowhere to
// report its own failure. After Close it drops the line.
func (w *LogWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.waiting)+len(line) > maxLog {
		w.lose(1)
		return len(line), nil
	}
	w.waiting = append(w.waiting, line...)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

// lose counts lost lines. The caller holds the lock.
func (w *LogWriter) lose(lines int) {
	w.lost += lines
	w.total += uint64(lines)
}

// Lost returns the number of lines lost since the start.
func (w *LogWriter) Lost() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// run writes the queued lines until Close.
func (w *LogWriter) run() {
	defer close(w.done)
	var writing []byte
	for range w.wake {
		writing = w.flush(writing)
		time.Sleep(logPause)
	}
	w.flush(writing)
}

// flush writes the queued lines, and then the number of lines that were lost after
// them. The next lines are queued in the buffer empty; flush returns the one for the
// lines after these.
func (w *LogWriter) flush(empty []byte) []byte {
	w.mu.Lock()
	lines, lost := w.waiting, w.lost
	w.waiting, w.lost = empty[:0], 0
	w.mu.Unlock()
	if len(lines) > 0 {
		n, err := w.to.Write(lines)
		if err != nil {
			w.mu.Lock()
			w.lost += lost
			w.lose(bytes.Count(lines[n:], []byte("\n")))
			w.mu.Unlock()
			return lines
		}
	}
	if lost > 0 {
		if _, err := w.to.Write(w.report(lost)); err != nil {
			w.mu.Lock()
			w.lost += lost
			w.mu.Unlock()
		}
	}
	return lines
}

// lastWrite is the time limit of Close.
const lastWrite = 5 * time.Second

// Close writes the queued lines, for up to five seconds.
func (w *LogWriter) Close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.wake)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(lastWrite):
	}
}

// inSeconds returns a duration as seconds, as metrics have them: JSON has no durations.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// NewLogger returns a logger to w. The format is text or json, the level debug, info,
// warn or error. In JSON durations are seconds.
func NewLogger(w *LogWriter, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("unknown log level %q (debug, info, warn or error)", level)
	}
	handler := func(to io.Writer) slog.Handler { return slog.NewTextHandler(to, &slog.HandlerOptions{Level: l}) }
	switch format {
	case "text":
	case "json":
		handler = func(to io.Writer) slog.Handler {
			return slog.NewJSONHandler(to, &slog.HandlerOptions{Level: l, ReplaceAttr: inSeconds})
		}
	default:
		return nil, fmt.Errorf("unknown log format %q (text or json)", format)
	}
	w.report = func(lines int) []byte {
		var b bytes.Buffer
		slog.New(handler(&b)).Error("log lines dropped: they came faster than they could be written", "lines", lines)
		return b.Bytes()
	}
	return slog.New(handler(w)), nil
}
