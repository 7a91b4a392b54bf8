package server

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/fsnotify/fsnotify"

	"drover/e2e/fixture"
)

// Without inotify the server runs, and reads the config again when its file changes and
// on SIGHUP (finding H11).
func TestNoInotify(t *testing.T) {
	s := testServer(t)
	s.newWatcher = func() (*fsnotify.Watcher, error) { return nil, os.NewSyscallError("inotify_init1", syscall.EMFILE) }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.watchConfig(ctx) }()
	change := func(name string) {
		t.Helper()
		text := strings.Replace(testConfig, "name: m1", "name: "+name, 1)
		if err := os.WriteFile("new.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename("new.yaml", "drover.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	known := func(name string) func() bool {
		return func() bool { _, ok := s.Live.Farm().Node(name); return ok }
	}
	change("m7")
	fixture.Eventually(t, "the changed config", known("m7"))
	change("m8")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the config after SIGHUP", known("m8"))
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
