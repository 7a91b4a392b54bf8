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
// terminal, a full pipe), lines are dropped, and a later line of the log has their
// number.
type LogWriter struct {
	to io.Writer
	// report renders the line with the number of dropped lines.
	report func(lines int) []byte

	mu      sync.Mutex
	waiting []byte
	dropped int           // lines since the last write
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
// report its own failure.
func (w *LogWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return w.to.Write(line)
	case len(w.waiting)+len(line) > maxLog:
		w.dropped++
		return len(line), nil
	}
	w.waiting = append(w.waiting, line...)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

// run writes the queued lines until Close.
func (w *LogWriter) run() {
	defer close(w.done)
	var writing []byte
	for range w.wake {
		writing = w.take(writing)
		_, _ = w.to.Write(writing)
		time.Sleep(logPause)
	}
}

// take returns the queued lines, and keeps the buffer empty for the next ones.
func (w *LogWriter) take(empty []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.waiting
	if w.dropped > 0 {
		b = append(b, w.report(w.dropped)...)
	}
	w.waiting, w.dropped = empty[:0], 0
	return b
}

// lastWrite is the time limit of Close.
const lastWrite = 5 * time.Second

// Close writes the queued lines, for up to five seconds. Later lines are written
// directly.
func (w *LogWriter) Close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	close(w.wake)
	w.mu.Unlock()
	select {
	case <-w.done:
		_, _ = w.to.Write(w.take(nil))
	case <-time.After(lastWrite):
	}
}

// NewLogger returns a logger to w. The format is text or json, the level debug, info,
// warn or error.
func NewLogger(w *LogWriter, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("unknown log level %q (debug, info, warn or error)", level)
	}
	handler := func(to io.Writer) slog.Handler { return slog.NewTextHandler(to, &slog.HandlerOptions{Level: l}) }
	switch format {
	case "text":
	case "json":
		handler = func(to io.Writer) slog.Handler { return slog.NewJSONHandler(to, &slog.HandlerOptions{Level: l}) }
	default:
		return nil, fmt.Errorf("unknown log format %q (text or json)", format)
	}
	w.report = func(lines int) []byte {
		var b bytes.Buffer
		slog.New(handler(&b)).Error("lines of the log were dropped: they came faster than they could be written", "lines", lines)
		return b.Bytes()
	}
	return slog.New(handler(w)), nil
}
