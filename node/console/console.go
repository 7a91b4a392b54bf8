// Package console prints the progress of a boot, or of the agent, line by line and without
// ever blocking: [Console]. [Redact] keeps join tokens out of every text.
//
// It does not know the steps of a boot.
package console

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/printable"
)

// Console prints the progress of a boot:
//
//	drover  3.2s network: eth0 10.77.0.11/24 from 10.77.0.1
//
// Printing never blocks: a serial port at 9600 baud takes 80 ms for a line, and one with
// hardware flow control and nothing connected blocks for ever. Lines that do not fit
// in the queue are dropped and counted.
type Console struct {
	Uptime func() time.Duration // since the kernel started; printed with each line

	queue chan queuedLine
	lost  atomic.Int64
	done  sync.WaitGroup
}

// queuedLine is a line, or a request to signal that the lines before it are printed.
type queuedLine struct {
	text    string
	reached chan<- struct{}
}

// New returns a console that prints to out. Call Close at the end.
func New(out io.Writer, uptime func() time.Duration) *Console {
	c := &Console{Uptime: uptime, queue: make(chan queuedLine, 512)}
	c.done.Go(func() { c.print(out) })
	return c
}

func (c *Console) print(out io.Writer) {
	for l := range c.queue {
		if l.reached != nil {
			close(l.reached)
			continue
		}
		// An error of the console is no reason to stop a boot, and there is
		// nowhere to report it.
		_, _ = io.WriteString(out, l.text)
		if n := c.lost.Swap(0); n > 0 {
			_, _ = fmt.Fprintf(out, "drover: %d lines lost, the console is too slow\n", n)
		}
	}
}

// Printf prints a text with a topic, line by line. It removes control characters, and
// everything that looks like a join token.
func (c *Console) Printf(topic, format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		l := fmt.Sprintf("drover %4.1fs %s: %s\n", c.Uptime().Seconds(), topic, printable.Text(Redact(line)))
		select {
		case c.queue <- queuedLine{text: l}:
		default:
			c.lost.Add(1)
		}
	}
}

// Flush waits until all lines so far are printed, at most limit.
func (c *Console) Flush(limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	reached := make(chan struct{})
	select {
	case c.queue <- queuedLine{reached: reached}:
	case <-t.C:
		return
	}
	select {
	case <-reached:
	case <-t.C:
	}
}

// Close prints the queued lines and stops. Do not call Printf afterwards.
func (c *Console) Close() {
	close(c.queue)
	c.done.Wait()
}

// Uptime returns the time since the kernel started.
func Uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
