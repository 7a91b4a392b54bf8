package lab

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"drover/e2e/netns"
)

// Capture records what crosses the bridge.
type Capture struct {
	File string // pcap, whole frames

	rack      *Rack
	raw, text *Process
}

// captured is how tcpdump says at its end what it missed.
var captured = regexp.MustCompile(`(\d+) packets? dropped by (kernel|interface)`)

// Capture records everything that crosses the bridge into file, until
// [Capture.Stop]. It needs tcpdump.
func (r *Rack) Capture(ctx context.Context, file string) (*Capture, error) {
	// 64 MB of buffer: an image of 300 MB passes in a few seconds, while the
	// guests keep all CPUs busy. -Z root: the file is in a directory of ours.
	raw := exec.Command("tcpdump", "-i", Bridge, "-s", "0", "-B", "65536", "-U", "-Z", "root", "-w", file)
	// A second one prints DHCP as text, for who wants to see what is asked.
	text := exec.Command("tcpdump", "-i", Bridge, "-n", "-l", "-Z", "root", "udp and (port 67 or port 68)")
	c := &Capture{File: file, rack: r}
	var err error
	if c.raw, err = r.listen(ctx, "capture", raw); err != nil {
		return nil, err
	}
	if c.text, err = r.listen(ctx, "dhcp", text); err != nil {
		return nil, err
	}
	return c, nil
}

// listen starts a tcpdump and waits until it listens.
func (r *Rack) listen(ctx context.Context, name string, cmd *exec.Cmd) (*Process, error) {
	p, err := r.Start(name, cmd)
	if err != nil {
		return nil, err
	}
	for {
		b, err := os.ReadFile(p.Log)
		switch {
		case err != nil:
			return nil, err
		case strings.Contains(string(b), "listening on"):
			return p, nil
		case !p.Running():
			return nil, fmt.Errorf("tcpdump ended: %s", b)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("tcpdump does not listen: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Text returns the file with the DHCP traffic as text.
func (c *Capture) Text() string { return c.text.Log }

// Stop ends the capture. It is an error when something was not recorded.
func (c *Capture) Stop() error {
	if err := c.text.Stop(5 * time.Second); err != nil {
		return err
	}
	if err := c.settle(); err != nil {
		return err
	}
	if err := c.raw.Signal(syscall.SIGINT); err != nil {
		return err
	}
	if err := c.raw.Stop(time.Minute); err != nil {
		return err
	}
	b, err := os.ReadFile(c.raw.Log)
	if err != nil {
		return err
	}
	counts := captured.FindAllStringSubmatch(string(b), -1)
	if len(counts) == 0 {
		return fmt.Errorf("tcpdump does not say what it missed: %s", b)
	}
	for _, m := range counts {
		if n, err := strconv.Atoi(m[1]); n != 0 || err != nil {
			return fmt.Errorf("capture is not whole: %s", m[0])
		}
	}
	return nil
}

// settle waits until what has crossed the bridge so far is in the file. The kernel hands frames
// over in blocks, and tcpdump forgets those that it has not read when it ends.
func (c *Capture) settle() error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	mark := []byte(rand.Text())
	if err := netns.Namespace(c.rack.Name).Mark(Bridge, string(mark)); err != nil {
		return err
	}
	var rest []byte // of what was read, where the mark can begin
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		more, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		if rest = append(rest, more...); bytes.Contains(rest, mark) {
			return nil
		}
		rest = rest[max(0, len(rest)-len(mark)):]
	}
	return errors.New("tcpdump does not write what crosses the bridge")
}
