package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/state"
)

// M6: a server does not start with an empty state beside its own keys, until the
// operator says so.
func TestStateIsGone(t *testing.T) {
	testServer(t).Close() // makes the keys
	files, err := filepath.Glob("state/drover.*")
	if err != nil || len(files) < 3 {
		t.Fatalf("got the files %q, %v", files, err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)}
	if s, err := New(o); err == nil {
		s.Close()
		t.Fatal("the server starts without its state")
	} else {
		fixture.WantText(t, "error", err.Error(), "has no state, but api.token of a server that ran with it", "run: touch state/"+state.AcceptLossFile)
	}
	if err := os.WriteFile(filepath.Join("state", state.AcceptLossFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// A state directory that others can write to is refused, as a key that they can read.
func TestStateMode(t *testing.T) {
	testServer(t).Close()
	for mode, good := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o777: false, 0o775: false, 0o702: false, os.ModeSticky | 0o777: false} {
		if err := os.Chmod("state", mode); err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			s.Close()
		}
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "state directory state: others can write to it") {
			t.Errorf("mode %v: got %v", mode, err)
		}
	}
}
