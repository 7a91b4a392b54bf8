package server

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// logPause is how far apart two writes of the log are at least. A line
	// after a rest is written at once; in a storm of requests, hundreds share a
	// write.
	logPause = 25 * time.Millisecond

	// maxLog is how many bytes wait to be written at most. Who logs more waits.
	maxLog = 1 << 20
)

// LogWriter writes what is logged to another writer, in a goroutine of its own.
type LogWriter struct {
	to io.Writer

	mu      sync.Mutex
	room    *sync.Cond // there is room in waiting
	waiting []byte
	wake    chan struct{} // something waits; closed by Close
	closed  bool
	done    chan struct{}
}

func NewLogWriter(to io.Writer) *LogWriter {
	w := &LogWriter{to: to, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.room = sync.NewCond(&w.mu)
	go w.run()
	return w
}

// Write takes a line to be written. It never fails: there is nobody to tell.
func (w *LogWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) > maxLog && !w.closed {
		w.room.Wait()
	}
	if w.closed {
		return w.to.Write(line)
	}
	w.waiting = append(w.waiting, line...)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

func (w *LogWriter) run() {
	defer close(w.done)
	var writing []byte
	for range w.wake {
		w.mu.Lock()
		writing, w.waiting = w.waiting, writing[:0]
		w.room.Broadcast()
		w.mu.Unlock()
		_, _ = w.to.Write(writing)
		time.Sleep(logPause)
	}
}

// Close writes what waits. What is logged later is written at once.
func (w *LogWriter) Close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	close(w.wake)
	w.room.Broadcast()
	w.mu.Unlock()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.to.Write(w.waiting)
	w.waiting = nil
}

func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("unknown log level %q (debug, info, warn or error)", level)
	}
	switch o := (&slog.HandlerOptions{Level: l}); format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("unknown log format %q (text or json)", format)
}
