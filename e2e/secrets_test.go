package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/lab"
	"drover/e2e/lab/pcap"
)

// tokenWatch records every bootstrap token of a cluster. It watches as the administrator,
// from before drover starts: tokens live for minutes only.
type tokenWatch struct {
	file string
	proc *exec.Cmd
}

// watchTokens prepares a watch. The caller starts its process.
func watchTokens(t *testing.T, kubectl string, p *controlplane.Cluster) *tokenWatch {
	t.Helper()
	w := &tokenWatch{file: filepath.Join(t.TempDir(), "secrets.json")}
	f, err := os.OpenFile(w.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w.proc = exec.Command(kubectl, "--kubeconfig", p.Admin, "get", "secrets", "-n", "kube-system",
		"--field-selector", "type=bootstrap.kubernetes.io/token", "--watch", "-o", "json")
	w.proc.Stdout, w.proc.Stderr = f, t.Output()
	return w
}

// secrets returns the secret halves of all tokens seen.
func (w *tokenWatch) secrets(t *testing.T) []string {
	t.Helper()
	f, err := os.Open(w.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var found []string
	dec := json.NewDecoder(f)
	for {
		var s struct {
			Data map[string][]byte `json:"data"`
		}
		err := dec.Decode(&s)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break // the last line is incomplete
		}
		if err != nil {
			t.Fatal(err)
		}
		if secret := string(s.Data["token-secret"]); secret != "" && !slices.Contains(found, secret) {
			found = append(found, secret)
		}
	}
	for _, s := range found {
		if len(s) != 16 {
			t.Fatalf("a token secret of %d characters, want 16", len(s))
		}
	}
	return found
}

// cmdlines records every command line on this host.
type cmdlines struct {
	mu   sync.Mutex
	seen map[string]bool
	stop chan struct{}
	done chan struct{}
}

func watchCmdlines() *cmdlines {
	c := &cmdlines{seen: make(map[string]bool), stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for {
			c.sample()
			select {
			case <-c.stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return c
}

func (c *cmdlines) sample() {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil { // the process may have ended
			c.seen[strings.ReplaceAll(string(b), "\x00", " ")] = true
		}
	}
}

// close ends the watch and returns the command lines.
func (c *cmdlines) close() string {
	close(c.stop)
	<-c.done
	var all strings.Builder
	for line := range c.seen {
		fmt.Fprintln(&all, line)
	}
	return all.String()
}

// testimony connects to the witness on the node (testdata/ready.yaml) and returns its
// report: command lines and journal.
func testimony(t *testing.T, r *lab.Rack) string {
	t.Helper()
	l, err := r.Listen("tcp", "10.77.0.1:9000")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	time.AfterFunc(3*time.Minute, func() { l.Close() })
	conn, err := l.Accept()
	if err != nil {
		t.Fatalf("the witness on the node does not come: %v", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"== kernel command line\n", "== command lines\n", "== journal\n", "\n== end\n"} {
		if !strings.Contains(string(b), want) {
			t.Fatalf("the witness was cut short: no %q in %d bytes", want, len(b))
		}
	}
	return string(b)
}

// wire is the content of a capture: drover's HTTP traffic, and found secrets.
type wire struct {
	found    []string // secrets
	served   int64    // bytes sent from port 80
	requests []string // first lines and Range headers of HTTP requests
	answers  []string // status lines
}

// searchWire searches all traffic on TCP port 80, in both directions, and every UDP
// datagram (DHCP and TFTP).
func searchWire(t *testing.T, file string, secrets ...string) wire {
	t.Helper()
	var (
		w       wire
		streams []*conversation
	)
	s := pcap.Streams{Open: func(flow pcap.Flow) io.Writer {
		if flow.Src.Port() != 80 && flow.Dst.Port() != 80 {
			return nil
		}
		c := &conversation{Needles: pcap.NewNeedles(secrets...), wire: &w, server: flow.Src.Port() == 80}
		streams = append(streams, c)
		return c
	}}
	datagrams := pcap.NewNeedles(secrets...)
	for frame := range frames(t, file) {
		p, ok := pcap.Parse(frame)
		switch {
		case !ok:
		case !p.TCP:
			if _, err := datagrams.Write(p.Payload); err != nil {
				t.Fatal(err)
			}
		case p.Src.Port() == 80 || p.Dst.Port() == 80:
			if err := s.Add(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.found = datagrams.Found()
	for _, c := range streams {
		w.found = append(w.found, c.Found()...)
	}
	return w
}

// conversation is one direction of an HTTP connection.
type conversation struct {
	*pcap.Needles
	wire   *wire
	server bool
}

// Write records the heads of messages. It misses a head that does not begin a write or
// that continues in the next one; a node's requests are short enough.
func (c *conversation) Write(b []byte) (int, error) {
	if c.server {
		c.wire.served += int64(len(b))
	}
	text := string(b[:min(len(b), 2048)])
	head, _, _ := strings.Cut(text, "\r\n\r\n")
	switch lines := strings.Split(head, "\r\n"); {
	case !strings.Contains(lines[0], "HTTP/1."):
	case c.server:
		c.wire.answers = append(c.wire.answers, lines[0])
	default:
		c.wire.requests = append(c.wire.requests, lines[0])
		for _, line := range lines[1:] {
			if strings.HasPrefix(line, "Range: ") {
				c.wire.requests = append(c.wire.requests, line)
			}
		}
	}
	return c.Needles.Write(b)
}
