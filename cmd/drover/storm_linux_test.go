package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/imagebuild"
	"drover/pools"
)

// The storm: machines that boot at the same time, and the limits of the server.
const (
	stormNodes = 500
	stormSlots = 64        // of the queue; it is the default
	stormRoot  = 200 << 20 // bytes of the root image
	stormRSS   = 300 << 10 // kB of memory, the limit of the server
)

// TestStorm has 500 nodes fetch script, kernel, initrd and root image at the same time
// from a release build of drover. Each gets all its files, in turn.
func TestStorm(t *testing.T) {
	s := newStorm(t)
	s.start()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	watched := make(chan peak, 1)
	stop := make(chan struct{})
	go func() { watched <- s.watch(stop) }()
	begin := time.Now()
	var all sync.WaitGroup
	for i := range stormNodes {
		all.Go(func() {
			if err := s.boot(ctx, i); err != nil {
				t.Errorf("node %d: %v", i, err)
				cancel()
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	close(stop)
	most := <-watched
	count := s.metric("drover_image_wait_seconds_count")
	rss := s.memory()
	t.Logf("%d nodes in %.1f s: %.2f GB/s, up to %.0f transfers and %.0f in the queue, waits of %.0f s in all, %d MB of memory at most",
		stormNodes, took.Seconds(), float64(stormNodes*stormRoot)/1e9/took.Seconds(), most.running, most.waiting, s.metric("drover_image_wait_seconds_sum"), rss>>10)
	switch {
	case most.err != nil:
		t.Error(most.err)
	case most.running > stormSlots || most.waiting == 0:
		t.Errorf("metrics show %.0f transfers and %.0f in the queue at most, want %d and some", most.running, most.waiting, stormSlots)
	}
	if count != stormNodes {
		t.Errorf("%.0f nodes had their turn, want each of %d once", count, stormNodes)
	}
	fixture.Retry(t, "the end of all transfers", func() error { // the node sees it before the server
		if running, waiting := s.metric("drover_image_transfers"), s.metric("drover_image_queue"); running+waiting != 0 {
			return fmt.Errorf("%.0f transfers and %.0f in the queue", running, waiting)
		}
		return nil
	})
	if rss >= stormRSS {
		t.Errorf("the server used %d kB of memory, want less than %d", rss, stormRSS)
	}
	s.readLog()
}

// storm is a server process, and nodes with loopback addresses of their own.
type storm struct {
	t              *testing.T
	dir            string
	http, api, log string
	server         *exec.Cmd
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	s := &storm{t: t, dir: t.TempDir()}
	s.http, s.api, s.log = freePort(t), freePort(t), filepath.Join(s.dir, "log")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(s.dir, "drover"), "drover/cmd/drover")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var nodes strings.Builder
	for i := range stormNodes {
		fmt.Fprintf(&nodes, "\n      - {name: n%d, macs: [%q], ip: %s}", i, stormMAC(i), stormAddr(i))
	}
	config := fmt.Sprintf(`server: {dhcp: "off", address: 127.0.0.1, http: %q, tftp: %q, api: %q}
subnets: [{cidr: 127.77.0.0/16}]
pools:
  - name: storm
    image: debian-12
    nodes:%s
`, s.http, freePort(t), s.api, nodes.String())
	if err := os.WriteFile(filepath.Join(s.dir, "drover.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.image(map[string]int64{imagebuild.KernelFile: 8 << 20, imagebuild.InitrdFile: 4 << 20, imagebuild.SquashfsFile: stormRoot})
	return s
}

func stormMAC(i int) pools.MAC { return pools.MAC{0x52, 0x54, 0, 0x77, byte(i >> 8), byte(i)} }
func stormAddr(i int) string   { return fmt.Sprintf("127.77.%d.%d", 1+i/200, 1+i%200) }

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// image makes an image of zeros, as sparse files.
func (s *storm) image(files map[string]int64) {
	s.t.Helper()
	m := imagebuild.Manifest{Name: "debian-12", Platform: "linux/amd64", KernelVersion: "6.1", Files: map[string]imagebuild.File{}}
	for name, size := range files {
		h := sha256.New()
		if _, err := io.CopyN(h, zeros{}, size); err != nil {
			s.t.Fatal(err)
		}
		m.Files[name] = imagebuild.File{Size: size, SHA256: hex.EncodeToString(h.Sum(nil))}
	}
	images := filepath.Join(s.dir, "state", "images", m.Name)
	dir := filepath.Join(images, m.ID())
	text, err := json.Marshal(m)
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o755), os.Symlink(m.ID(), filepath.Join(images, "current")),
			os.WriteFile(filepath.Join(dir, imagebuild.ManifestFile), text, 0o644))
	}
	for name, size := range files {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(path, nil, 0o644), os.Truncate(path, size))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// start starts the server, and waits for its first answer.
func (s *storm) start() {
	s.t.Helper()
	log, err := os.Create(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.server = exec.Command(filepath.Join(s.dir, "drover"), "serve", "-c", filepath.Join(s.dir, "drover.yaml"), "--state", filepath.Join(s.dir, "state"))
	s.server.Stderr = log
	if err := s.server.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = s.server.Process.Signal(syscall.SIGTERM)
		if err := s.server.Wait(); err != nil {
			s.t.Errorf("drover serve: %v", err)
		}
	})
	fixture.Retry(s.t, "an answer of the server", func() error {
		resp, err := http.Get("http://" + s.api + "/healthz")
		if err != nil {
			b, _ := os.ReadFile(s.log)
			return fmt.Errorf("%w\n%s", err, b)
		}
		return resp.Body.Close()
	})
}

var (
	stormKernel = regexp.MustCompile(`/images/\S+/kernel\b`)
	stormInitrd = regexp.MustCompile(`/images/\S+/initrd\b`)
	stormImage  = regexp.MustCompile(`drover\.root=(\S+)`)
)

// boot requests what firmware and drover-init of one node request.
func (s *storm) boot(ctx context.Context, i int) error {
	from := stormAddr(i)
	script, err := s.get(ctx, from, pools.ScriptPath+stormMAC(i).Dashed(), nil)
	if err != nil {
		return err
	}
	root := stormImage.FindStringSubmatch(script.text)
	kernel, initrd := stormKernel.FindString(script.text), stormInitrd.FindString(script.text)
	if script.status != 200 || root == nil || kernel == "" || initrd == "" {
		return fmt.Errorf("script: status %d\n%s", script.status, script.text)
	}
	for _, file := range []string{kernel, initrd} {
		if a, err := s.get(ctx, from, file, nil); err != nil || a.status != 200 {
			return fmt.Errorf("%s: status %d, %w", file, a.status, err)
		}
	}
	last := stormNodes
	for {
		a, err := s.get(ctx, from, root[1], http.Header{pools.WaitHeader: {"4"}})
		switch {
		case err != nil:
			return err
		case a.status == 200 && a.bytes == stormRoot:
			return nil
		case a.status != 503 || a.place < 1 || a.place > last:
			return fmt.Errorf("root image: status %d, %d bytes, place %d after %d: %s", a.status, a.bytes, a.place, last, a.text)
		}
		last = a.place
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(a.again):
		}
	}
}

// stormAnswer is an HTTP answer; a large one without its text.
type stormAnswer struct {
	status int
	text   string
	bytes  int64
	place  int
	again  time.Duration
}

// get sends a GET from a node's address.
func (s *storm) get(ctx context.Context, from, path string, header http.Header) (a stormAnswer, err error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(ctx, "tcp", s.http)
	if err != nil {
		return a, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	r, err := http.NewRequest(http.MethodGet, "http://"+s.http+path, nil)
	if err != nil {
		return a, err
	}
	r.Header, r.Close = header, true
	if header == nil {
		r.Header = http.Header{}
	}
	if err := r.Write(conn); err != nil {
		return a, err
	}
	buffered := bufio.NewReaderSize(conn, 4096)
	resp, err := http.ReadResponse(buffered, r)
	if err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	a.status = resp.StatusCode
	a.place, _ = strconv.Atoi(resp.Header.Get(pools.PlaceHeader))
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	a.again = time.Duration(seconds) * time.Second
	if resp.ContentLength > 1<<20 {
		a.bytes, err = discard(conn.(*net.TCPConn), int64(buffered.Buffered()))
		return a, err
	}
	b, err := io.ReadAll(resp.Body)
	a.text, a.bytes = string(b), int64(len(b))
	return a, err
}

// discard receives everything without copying it (MSG_TRUNC), since the nodes share the
// processors with the server. It returns n plus the number of bytes.
func discard(c *net.TCPConn, n int64) (int64, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return n, err
	}
	buf := make([]byte, 64<<10) // MSG_TRUNC writes nothing to it
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			k, _, err := unix.Recvfrom(int(fd), buf, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return false
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil || k == 0:
				failed = err
				return true
			}
			n += int64(k)
		}
	})
	return n, errors.Join(err, failed)
}

// peak has the highest values of the metrics.
type peak struct {
	running, waiting float64
	err              error
}

// watch reads the metrics until stop is closed.
func (s *storm) watch(stop <-chan struct{}) (p peak) {
	for {
		select {
		case <-stop:
			return p
		case <-time.After(100 * time.Millisecond):
		}
		text, err := s.metrics()
		if err != nil {
			p.err = err
			return p
		}
		p.running = max(p.running, gauge(text, "drover_image_transfers"))
		p.waiting = max(p.waiting, gauge(text, "drover_image_queue"))
	}
}

func (s *storm) metrics() (string, error) {
	token, err := os.ReadFile(filepath.Join(s.dir, "state", "api.token"))
	if err != nil {
		return "", err
	}
	r, err := http.NewRequest(http.MethodGet, "http://"+s.api+"/metrics", nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(b), err
}

func (s *storm) metric(name string) float64 {
	s.t.Helper()
	text, err := s.metrics()
	if err != nil {
		s.t.Fatal(err)
	}
	return gauge(text, name)
}

// gauge returns the value of a metric without labels; -1 if it is missing.
func gauge(text, name string) float64 {
	_, rest, ok := strings.Cut(text, "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(line, 64)
	if !ok || err != nil {
		return -1
	}
	return v
}

// memory returns the server's peak resident memory, in kB.
func (s *storm) memory() int {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.server.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	n, err := strconv.Atoi(strings.Fields(rest + " ?")[0])
	if err != nil {
		s.t.Fatalf("no VmHWM in\n%s", b)
	}
	return n
}

// readLog checks the log of the storm: about four lines for each node, and no warning
// or error.
func (s *storm) readLog() {
	s.t.Helper()
	var lines []string
	fixture.Retry(s.t, "four lines of each node in the log", func() error { // the last are written after the transfer
		b, err := os.ReadFile(s.log)
		if err != nil {
			return err
		}
		if lines = strings.Split(string(b), "\n"); len(lines) < 4*stormNodes {
			return fmt.Errorf("%d lines for %d nodes", len(lines), stormNodes)
		}
		return nil
	})
	if len(lines) > 4*stormNodes+50 {
		s.t.Errorf("the log has %d lines, want four of each of %d nodes", len(lines), stormNodes)
	}
	waited := 0
	for _, line := range lines {
		if strings.Contains(line, "root.squashfs") && strings.Contains(line, " position=") && strings.Contains(line, " waited=") && strings.Contains(line, " node=n") {
			waited++
		}
		if strings.Contains(line, "level=WARN") && strings.Contains(line, "msg=request") || strings.Contains(line, "level=ERROR") {
			s.t.Errorf("log: %s", line)
		}
	}
	if waited == 0 {
		s.t.Error("the log has no line of a node that waited")
	}
}
