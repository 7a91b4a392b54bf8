package watch

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Log writes lines with the seconds since the start.
type Log struct {
	io.Writer // lines as they are
	start     time.Time
}

// NewLog returns a log that starts now.
func NewLog(w io.Writer) *Log { return &Log{Writer: w, start: time.Now()} }

// Say writes a line.
func (l *Log) Say(format string, args ...any) {
	fmt.Fprintf(l.Writer, "[%4.0f s] %s\n", l.Elapsed().Seconds(), fmt.Sprintf(format, args...))
}

// Elapsed returns the time since the start.
func (l *Log) Elapsed() time.Duration { return time.Since(l.start) }

// Lines returns a writer that makes a line of each line, for what reports its progress to
// a writer.
func (l *Log) Lines() io.Writer { return lines{l} }

type lines struct{ log *Log }

func (l lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		l.log.Say("%s", strings.TrimRight(line, "\n"))
	}
	return len(b), nil
}
