package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"drover/e2e/fixture"
)

// logged is a server process whose log goes to a pipe.
type logged struct {
	t         *testing.T
	http, api string
	token     string
	cmd       *exec.Cmd
	log       *os.File // the end to read from
	lost      string   // lines, as the metrics last had it
}

// startLogged starts a server that logs a line for each request.
func startLogged(t *testing.T) *logged {
	t.Helper()
	dir := t.TempDir()
	s := &logged{t: t, http: freePort(t), api: freePort(t), lost: "0"}
	file := filepath.Join(dir, "drover.yaml")
	text := fmt.Sprintf(`server: {dhcp: "off", address: 127.0.0.1, http: %q, tftp: %q, api: %q}
subnets: [{cidr: 127.0.0.0/8}]
pools: [{name: web, image: debian-12}]
`, s.http, freePort(t), s.api)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s.log, s.cmd = log, exec.Command(exe)
	s.cmd.Args = []string{"drover", "serve", "-c", file, "--state", filepath.Join(dir, "state"), "--log-level", "debug"}
	s.cmd.Stderr = stderr
	err = s.cmd.Start()
	stderr.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	fixture.Retry(t, "an answer of the server", func() error {
		b, err := os.ReadFile(filepath.Join(dir, "state", "api.token"))
		if s.token = strings.TrimSpace(string(b)); err == nil {
			_, err = s.get("http://" + s.api + "/healthz")
		}
		return err
	})
	return s
}

func (s *logged) get(url string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(url, "http://"+s.api) {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

var linesDropped = regexp.MustCompile(`(?m)^drover_log_lines_dropped_total ([0-9.e+]+)$`)

// flood makes the server log until more lines are lost, and checks that it still
// answers.
func (s *logged) flood() {
	s.t.Helper()
	fixture.Retry(s.t, "lost lines in the metrics", func() error {
		for range 500 {
			if _, err := s.get("http://" + s.http + "/" + strings.Repeat("x", 3000)); err != nil {
				s.t.Fatalf("a node gets no answer: %v", err)
			}
		}
		metrics, err := s.get("http://" + s.api + "/metrics")
		if err != nil {
			s.t.Fatalf("no metrics: %v", err)
		}
		n := linesDropped.FindStringSubmatch(metrics)
		if n == nil || n[1] == s.lost {
			return fmt.Errorf("got %q", n)
		}
		s.lost = n[1]
		return nil
	})
}

// end sends SIGTERM, and checks that the server ends.
func (s *logged) end() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("the server ended with %v", err)
	}
}

// A log that nobody reads stops neither the server nor its end. When it is read again,
// it has the number of lost lines (finding H9).
func TestLogNobodyReads(t *testing.T) {
	s := startLogged(t)
	s.flood()
	lines := bufio.NewScanner(s.log)
	for lines.Scan() && !strings.Contains(lines.Text(), `msg="log lines dropped`) {
	}
	if !strings.Contains(lines.Text(), " lines=") {
		t.Errorf("the log ends without the number of lost lines: %q, %v", lines.Text(), lines.Err())
	}
	s.flood() // nobody reads again
	s.end()
}

// A server goes on when the reader of its log has ended.
func TestLogWithoutReader(t *testing.T) {
	s := startLogged(t)
	if err := s.log.Close(); err != nil {
		t.Fatal(err)
	}
	s.flood()
	s.end()
}

// A server that cannot start ends with its error as the last line of the log, and ends
// also if nobody reads it.
func TestFatalErrorInLog(t *testing.T) {
	s := startLogged(t)
	second := func(stderr io.Writer) error {
		cmd := exec.Command(s.cmd.Path)
		cmd.Args, cmd.Stderr = s.cmd.Args, stderr
		return cmd.Run()
	}
	var log strings.Builder
	err := second(&log)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("got %v, want exit 1", err)
	}
	if got := strings.TrimSpace(log.String()); !strings.Contains(got[strings.LastIndex(got, "\n")+1:], "drover: ") || !strings.Contains(got, "another drover") {
		t.Errorf("got the log %s", got)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.Write(make([]byte, 64<<10)); err != nil { // the pipe is full
		t.Fatal(err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](second(w)); !ok || exit.ExitCode() != 1 {
		t.Errorf("with a full pipe: got %v, want exit 1", err)
	}
	s.end()
}
