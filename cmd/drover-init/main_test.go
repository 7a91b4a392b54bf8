package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name     string
		args     []string
		code     int
		out, err string // parts of what is printed
	}{
		{"help", []string{"drover-init", "--help"}, 0, "not meant to be\nrun by hand", ""},
		{"version", []string{"drover-init", "version"}, 0, "drover-init ", ""},
		{"nothing", []string{"drover-init"}, 2, "", "usage:"},
		{"unknown", []string{"drover-init", "boot"}, 2, "", `unknown command "boot"`},
		{"too much", []string{"drover-init", "agent", "now"}, 2, "", "usage:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if got := run(t.Context(), tt.args, &stdout, &stderr); got != tt.code {
				t.Errorf("exit code: got %d, want %d", got, tt.code)
			}
			if !strings.Contains(stdout.String(), tt.out) || tt.out == "" && stdout.Len() > 0 {
				t.Errorf("stdout: got %q, want %q in it", &stdout, tt.out)
			}
			if !strings.Contains(stderr.String(), tt.err) || tt.err == "" && stderr.Len() > 0 {
				t.Errorf("stderr: got %q, want %q in it", &stderr, tt.err)
			}
		})
	}
}

// transcript collects what is said.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (s *transcript) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *transcript) topic(topic, format string, args ...any) { s.say(topic+": "+format, args...) }

func (s *transcript) Write(b []byte) (int, error) {
	s.say("%s", strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// wantText fails unless got contains all the parts.
func wantText(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%s: got\n%s\nwant %q in it", what, got, p)
		}
	}
}

// wantNoText fails if got contains any of the parts.
func wantNoText(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(got, p) {
			t.Errorf("%s: got\n%s\nwant no %q in it", what, got, p)
		}
	}
}

// tree writes files below a new directory. A content that starts with "->"
// makes a symlink.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, "->"); ok {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	s, err := os.Lstat(path)
	if err != nil {
		t.Error(err)
		return
	}
	if got := s.Mode(); got != want {
		t.Errorf("%s: got mode %v, want %v", path, got, want)
	}
}

func fixedUptime() time.Duration { return 3200 * time.Millisecond }
