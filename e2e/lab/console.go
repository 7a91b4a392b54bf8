package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// keepLines is the number of lines of a console in memory, for matching; the file has all
// of them.
const keepLines = 20000

// escapes matches the terminal sequences of firmware screens.
var escapes = regexp.MustCompile("\x1b\\[[0-9;=?]*[A-Za-z]|\x1b[()][A-Z0-9]")

// errOff is the error of a machine that is off.
var errOff = errors.New("the machine is off")

// console splits a serial line into lines and writes each to a file with the
// seconds since power-on. It is the io.Writer of the machine's serial port.
type console struct {
	started time.Time

	mu      sync.Mutex // guards what follows
	file    *os.File
	partial []byte
	lines   []string
	dropped int           // lines no longer in lines
	changed chan struct{} // closed, and made anew, at each write
	off     bool
}

func newConsole(path string) (*console, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &console{started: time.Now(), file: f, changed: make(chan struct{})}, nil
}

// Write takes what the machine sends.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const longest = 16 << 10 // a line that never ends must not fill memory
	for _, ch := range b {
		switch {
		case ch == '\n' || ch == '\r' || len(c.partial) >= longest:
			c.flush()
		default:
			c.partial = append(c.partial, ch)
		}
	}
	c.tell()
	return len(b), nil
}

// flush ends the current line.
func (c *console) flush() {
	line := c.current()
	c.partial = c.partial[:0]
	if line == "" || c.off {
		return
	}
	fmt.Fprintf(c.file, "%8.2f %s\n", time.Since(c.started).Seconds(), line)
	if len(c.lines) >= keepLines {
		c.lines = slices.Delete(c.lines, 0, keepLines/2)
		c.dropped += keepLines / 2
	}
	c.lines = append(c.lines, line)
}

// current returns the line that is not yet complete.
func (c *console) current() string {
	return strings.TrimRight(escapes.ReplaceAllString(string(c.partial), ""), " \t")
}

// tell wakes the waiting goroutines.
func (c *console) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// close ends the console and wakes the waiting goroutines.
func (c *console) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	c.off = true
	c.file.Close()
	c.tell()
}

// wait returns the first line that matches. A line counts before it is
// complete: firmware that waits has often said so without a line's end.
func (c *console) wait(ctx context.Context, re *regexp.Regexp) (string, error) {
	seen := 0 // lines looked at, of all there ever were
	for {
		c.mu.Lock()
		fresh := slices.Clone(c.lines[max(0, seen-c.dropped):])
		seen = c.dropped + len(c.lines)
		current, changed, off := c.current(), c.changed, c.off
		c.mu.Unlock()
		if i := slices.IndexFunc(fresh, re.MatchString); i >= 0 {
			return fresh[i], nil
		}
		if current != "" && re.MatchString(current) {
			return current, nil
		}
		if off {
			return "", errOff
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// tail returns the last n lines.
func (c *console) tail(n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines[max(0, len(c.lines)-n):])
}
