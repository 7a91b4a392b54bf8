package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
)

// Image is the name of the image in the configs of this package.
const Image = "lab"

// Farm is the config for the networks of a [Lab]. Older versions of drover accept it too. Its
// %s stands for more fields of server.
const Farm = `server: {interfaces: [br0], address: 10.77.0.1, api: "127.0.0.1:8443"%s}
subnets:
  - {cidr: 10.77.0.0/16, router: 10.77.0.254, dns: [10.77.0.53], domain: lab.example, lease: 1h}
tags:
  all: {files: {/etc/secret: {content: "the secret of the tenant\n"}}}
pools:
  - {name: a, image: lab, nodes: [{name: m1, macs: ["52:54:00:77:01:01"], ip: 10.77.1.10}]}
  - name: b
    image: lab
    nodes:
      - {name: m2, macs: ["52:54:00:77:01:02"], ip: 10.77.1.20}
      - {name: port1, match: {remoteID: sw1, circuitID: p1}, ip: 10.77.1.31}
  - {name: lobby, catchall: true, image: lab, range: 10.77.72.10-10.77.72.250, lease: 1h}
`

// MaxMemory is the limit of the server's resident memory in each attack, in bytes.
const MaxMemory = 400 << 20

// Server is the drover program in the namespace of a lab.
type Server struct {
	Dir    string    // its config, state, images, loaders and log
	Stderr io.Writer // nil: the file log in Dir
	Wild   bool      // the program may end without failing the test
	Root   string    // path of the root image

	t      testing.TB
	lab    *Lab
	api    *http.Client
	cmd    *exec.Cmd
	ended  chan struct{} // closed after cmd.Wait
	err    error         // of cmd.Wait
	killed atomic.Bool   // for its memory
}

// NewServer writes the config and an image with a root file system of size bytes, and
// starts nothing.
func (l *Lab) NewServer(t testing.TB, config string, size int64) *Server {
	t.Helper()
	s := &Server{Dir: t.TempDir(), t: t, lab: l, api: HTTP(l.Net, 20*time.Second)}
	for name, content := range map[string]string{
		"drover.yaml": config, "loaders/undionly.kpxe": strings.Repeat("loader--", 10<<10), "loaders/snponly.efi": strings.Repeat("loader--", 20<<10),
	} {
		path := filepath.Join(s.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	id, err := writeImage(filepath.Join(s.Dir, "images"), size)
	if err != nil {
		t.Fatal(err)
	}
	s.Root = pools.ImagePath + Image + "/" + id + "/root.squashfs"
	return s
}

// Serve is NewServer and Start.
func (l *Lab) Serve(t testing.TB, config string, size int64) *Server {
	t.Helper()
	s := l.NewServer(t, config, size)
	s.Start()
	return s
}

// State returns the state directory.
func (s *Server) State() string { return filepath.Join(s.Dir, "state") }

// Log returns what the server has logged to its file.
func (s *Server) Log() string {
	b, _ := os.ReadFile(filepath.Join(s.Dir, "log")) // empty before the first start
	return string(b)
}

// Start starts the program and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.Launch()
	fixture.Retry(s.t, "an answer of the server", func() error {
		if !s.Running() {
			s.t.Fatalf("drover ended: %v\n%s", s.err, s.Log())
		}
		return s.Health()
	})
}

// Launch starts the program.
func (s *Server) Launch() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := s.lab.Net.Command(s.lab.Program, "serve", "-c", filepath.Join(s.Dir, "drover.yaml"), "--state", s.State(),
		"--images", filepath.Join(s.Dir, "images"), "--loaders", filepath.Join(s.Dir, "loaders"))
	cmd.Stderr = log
	if s.Stderr != nil {
		cmd.Stderr = s.Stderr
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.cmd, s.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		s.err = cmd.Wait()
		close(ended)
	}(s.ended)
	go s.guard(cmd.Process.Pid, s.ended)
	s.t.Cleanup(func() { s.end(cmd) })
}

// end ends a process at the end of the test.
func (s *Server) end(cmd *exec.Cmd) {
	if s.cmd != cmd {
		return // it was started again since
	}
	if !s.Running() && !s.Wild {
		s.t.Errorf("drover ended during the attack: %v", s.err)
	}
	s.Kill()
	if s.t.Failed() {
		log := s.Log()
		s.t.Logf("the end of drover's log:\n%s", log[max(0, len(log)-4000):])
	}
}

// guard kills the program before it takes the memory of the host.
func (s *Server) guard(pid int, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if memory(pid, "VmRSS") > 2*MaxMemory {
			s.killed.Store(true)
			_ = syscall.Kill(pid, syscall.SIGKILL) // it has ended otherwise
			return
		}
	}
}

// Running reports whether the program runs.
func (s *Server) Running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Kill ends the program by SIGKILL.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it has ended otherwise
	<-s.ended
}

// Stop ends the program by SIGTERM.
func (s *Server) Stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it has ended otherwise
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.t.Error("drover does not end")
		s.Kill()
	}
}

// Peak returns the largest resident memory of the program, in bytes.
func (s *Server) Peak() int64 { return memory(s.cmd.Process.Pid, "VmHWM") }

// WantSmall fails the test if the server has used more than [MaxMemory].
func (s *Server) WantSmall() {
	s.t.Helper()
	switch peak := s.Peak(); {
	case s.killed.Load():
		s.t.Errorf("drover had to be killed at %d MB of memory, want less than %d MB", 2*MaxMemory>>20, MaxMemory>>20)
	case peak > MaxMemory:
		s.t.Errorf("drover used %d MB of memory, want less than %d MB", peak>>20, MaxMemory>>20)
	default:
		s.t.Logf("%d MB of memory at most", peak>>20)
	}
}

// memory returns a line of /proc/PID/status in bytes; 0 for a process that has ended.
func memory(pid int, name string) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it has ended: no file
	_, rest, _ := strings.Cut(string(b), name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(fields[0], 10, 64) // the kernel writes a number
	return kb << 10
}

// Health asks /healthz once.
func (s *Server) Health() error {
	resp, err := s.api.Get("http://127.0.0.1:8443/healthz")
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Ready returns the answer of /readyz to a request with the API token; "" if there is none.
func (s *Server) Ready() string {
	_, answer, err := s.request(http.MethodGet, "/readyz", "")
	if err != nil {
		return ""
	}
	return string(answer)
}

// Call sends a request with the API token, and decodes the answer into out, unless that is
// nil.
func (s *Server) Call(method, path, body string, out any) (status int, err error) {
	status, answer, err := s.request(method, path, body)
	switch {
	case err != nil:
	case status >= 300:
		err = errors.New("refused")
	case out != nil:
		err = json.Unmarshal(answer, out)
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %d: %w: %s", method, path, status, err, bytes.TrimSpace(answer[:min(len(answer), 500)]))
	}
	return status, err
}

// request sends a request with the API token.
func (s *Server) request(method, path, body string) (status int, answer []byte, err error) {
	token, err := os.ReadFile(filepath.Join(s.State(), "api.token"))
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(context.Background(), method, "http://127.0.0.1:8443"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.api.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return resp.StatusCode, answer, err
}

// Leases returns the leases as lines of address, MAC and state.
func (s *Server) Leases() (lines []string) {
	s.t.Helper()
	var leases []pools.LeaseInfo
	if _, err := s.Call(http.MethodGet, "/api/v1/leases", "", &leases); err != nil {
		s.t.Fatal(err)
	}
	for _, l := range leases {
		lines = append(lines, fmt.Sprintf("%s %s %s", l.Address, l.MAC, l.State))
	}
	return lines
}

// Boots returns the number of boots that the server knows of each node.
func (s *Server) Boots() map[string]int {
	s.t.Helper()
	var records []struct {
		Node string `json:"node"`
	}
	if _, err := s.Call(http.MethodGet, "/api/v1/boots", "", &records); err != nil {
		s.t.Fatal(err)
	}
	n := map[string]int{}
	for _, r := range records {
		n[r.Node]++
	}
	return n
}

// HTTP returns a client in a namespace that opens a connection for each request.
func HTTP(n netns.Namespace, timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return n.Dial(ctx, network, address)
		},
	}}
}
