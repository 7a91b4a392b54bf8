package server

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/fsnotify/fsnotify"

	"drover/e2e/fixture"
	"drover/pools"
)

// TestFileReloadAudited: a file that changes by itself is in the audit once, with its size and no
// name of a node, and a file that has not changed is not.
func TestFileReloadAudited(t *testing.T) {
	s := testServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.records.run(ctx) }()
	text := strings.Replace(testConfig, "name: m1", "name: m7", 1)
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.reloadFile("the file changed", pools.ConfigByFile)
	s.reloadFile("SIGHUP", pools.ConfigBySignal)
	written := make(chan struct{})
	s.records.add(func() { close(written) })
	<-written
	all, err := s.Store.Audit.List(10)
	if err != nil || len(all) != 1 || all[0].Actor != "config file" || len(all[0].Changes) != 2 {
		t.Fatalf("got %+v, %v", all, err)
	}
	if want := (pools.AuditChange{Field: "size", After: "1 added, 1 removed"}); all[0].Changes[1] != want {
		t.Errorf("got %+v, want %+v", all[0].Changes[1], want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

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
