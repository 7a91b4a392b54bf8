package netns

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Client is a DHCP client on one interface.
type Client struct {
	Kind
	Namespace Namespace
	Device    string // the interface
	Dir       string // of this client alone; its files stay between starts
	Keep      bool   // keep the lease when the program ends; most clients always do so

	cmd   *exec.Cmd
	ended chan error
	seen  int // bytes of the output that Wait has passed
}

// Start starts the client, or starts it again with its files. The client ends with the
// test.
func (c *Client) Start(t testing.TB, extra ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(c.Dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := c.conf
	if c.Keep {
		conf += c.keep
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "script"), fmt.Appendf(nil, script, c.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	said, err := os.OpenFile(c.said(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	c.seen = len(c.Said())
	cmd := c.command(append(c.args(c), extra...))
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	c.cmd, c.ended = cmd, ended
	t.Cleanup(func() {
		kill(cmd, ended)
		if t.Failed() {
			t.Logf("%s said:\n%s", c.Name, c.Said())
		}
	})
}

// command makes a command that runs in the namespace, with a host name and
// mounts of its own.
func (c *Client) command(argv []string) *exec.Cmd {
	lines := append([]string{"set -e", "hostname client"}, c.mounts...)
	args := []string{
		"--uts", "--mount", "--propagation", "private",
		"sh", "-c", strings.Join(append(lines, `exec "$@"`), "\n"), "sh",
	}
	cmd := c.Namespace.Command("unshare", append(args, argv...)...)
	cmd.Dir = c.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (c *Client) said() string { return filepath.Join(c.Dir, "said") }

// Said returns the client's output, and the variables of its script.
func (c *Client) Said() string {
	b, _ := os.ReadFile(c.said()) // no file: no output yet
	return string(b)
}

// Wait waits until the client reports an event, and returns the values of the event: the
// variables of its script, or of its lease file. The usual ones have the same names for all
// clients: address, mask, router, dns, domain, hostname and server.
func (c *Client) Wait(t testing.TB, e Event) map[string]string {
	t.Helper()
	facts := c.wait(t, e, func() bool { return false })
	if facts == nil {
		t.Fatalf("%s did not say %q", c.Name, c.says[e])
	}
	return facts
}

// WaitOrEnd is [Client.Wait] for a client that may give up: it returns nil when the client
// has ended without the event.
func (c *Client) WaitOrEnd(t testing.TB, e Event) map[string]string {
	t.Helper()
	return c.wait(t, e, func() bool {
		select {
		case err := <-c.ended:
			c.ended <- err // for a later call
			return true
		default:
			return false
		}
	})
}

// wait returns the values of an event; nil after the time limit, or once stop returns true.
func (c *Client) wait(t testing.TB, e Event, stop func() bool) map[string]string {
	t.Helper()
	if !c.Says(e) {
		t.Fatalf("%s has no words for %q", c.Name, e)
	}
	words := regexp.MustCompile(c.says[e])
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		stopped := stop() // before the output is read: there is no more after it
		said := c.Said()[c.seen:]
		if at := words.FindStringIndex(said); at != nil {
			if facts := c.facts(c, said[at[0]:at[1]], said[at[1]:]); facts != nil {
				c.seen += at[1]
				return facts
			}
		}
		if stopped {
			return nil
		}
	}
	return nil
}

// patience is the time limit for any action of a client.
const patience = 40 * time.Second

// Signal sends a signal to the client.
func (c *Client) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Renew makes the client renew its lease now, if it has a signal for that. Other clients
// renew at T1 of the lease.
func (c *Client) Renew(t testing.TB) {
	t.Helper()
	if c.renew != 0 {
		c.Signal(t, c.renew)
	}
}

// Says reports whether the client reports this kind of event.
func (c *Client) Says(e Event) bool { return c.says[e] != "" }

// Release makes the client release its lease and end.
func (c *Client) Release(t testing.TB) {
	t.Helper()
	c.release(t, c)
	_ = c.End(t) // the exit status differs by client
}

// End waits for the end of the client.
func (c *Client) End(t testing.TB) error {
	t.Helper()
	select {
	case err := <-c.ended:
		c.ended <- err // for a later call
		return err
	case <-time.After(patience):
		t.Fatalf("%s does not end", c.Name)
		return nil
	}
}

// Kill ends the client with all its children by SIGKILL, without a RELEASE, as a power
// cut does.
func (c *Client) Kill() { kill(c.cmd, c.ended) }

func kill(cmd *exec.Cmd, ended chan error) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error: it has ended
	ended <- <-ended
}
