package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"drover/pools/printable"
)

// console prints the lines that people see while a node boots:
//
//	drover  3.2s network: eth0 10.77.0.11/24 from 10.77.0.1
//
// Printing never blocks: a serial line at 9600 baud takes 80 ms for a line, and
// one with hardware flow control and nobody at the other end takes for ever.
// Lines that find the queue full are dropped, and counted.
type console struct {
	uptime func() time.Duration
	queue  chan queuedLine
	lost   atomic.Int64
	done   sync.WaitGroup
}

// queuedLine is a line, or a request to tell when the lines before it are out.
type queuedLine struct {
	text    string
	reached chan<- struct{}
}

// newConsole starts printing to out. Close ends it.
func newConsole(out io.Writer, uptime func() time.Duration) *console {
	c := &console{uptime: uptime, queue: make(chan queuedLine, 512)}
	c.done.Go(func() { c.print(out) })
	return c
}

func (c *console) print(out io.Writer) {
	for l := range c.queue {
		if l.reached != nil {
			close(l.reached)
			continue
		}
		// A console that cannot be written to is no reason to stop a boot,
		// and there is nowhere to tell it.
		_, _ = io.WriteString(out, l.text)
		if n := c.lost.Swap(0); n > 0 {
			_, _ = fmt.Fprintf(out, "drover: %d lines lost, the console is too slow\n", n)
		}
	}
}

// printf prints under a topic. Each line of the text becomes a line of its own;
// control characters and what looks like a join token are taken out.
func (c *console) printf(topic, format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		l := fmt.Sprintf("drover %4.1fs %s: %s\n", c.uptime().Seconds(), topic, printable.Text(redact(line)))
		select {
		case c.queue <- queuedLine{text: l}:
		default:
			c.lost.Add(1)
		}
	}
}

// flush waits until what was printed so far is out, or for limit.
func (c *console) flush(limit time.Duration) {
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

// close prints what is left and stops. No printf may follow.
func (c *console) close() {
	close(c.queue)
	c.done.Wait()
}

// uptime is the time since the kernel started.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
