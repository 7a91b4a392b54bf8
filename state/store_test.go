package state_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/pools"
	"drover/state"
	"drover/state/wal"
)

// testOptions completes the options of a test. Its clock stands a year after epoch, the
// time of most leases. A slow disk is no error, since other work may share the machine.
func testOptions(o state.Options) state.Options {
	if o.Now == nil {
		o.Now = func() time.Time { return epoch.AddDate(1, 0, 0) }
	}
	if o.Patience == 0 {
		o.Patience = time.Hour
	}
	return o
}

func open(t *testing.T, dir string) *state.Store {
	t.Helper()
	s, err := state.Open(dir, testOptions(state.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	return s
}

func shut(t testing.TB, s *state.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// reopen closes s and opens the same state again, as a restart does.
func reopen(t *testing.T, s *state.Store, dir string) *state.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func node(name, ip string) pools.PoolNode {
	return pools.PoolNode{Pool: "compute", Node: pools.Node{
		Name: name,
		MACs: []pools.MAC{{0x52, 0x54, 0, 0, 0, 1}, {0x52, 0x54, 0, 0, 0, 2}},
		IP:   netip.MustParseAddr(ip),
		Tags: []string{"foo"},
	}}
}

func TestNodesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, n := range []pools.PoolNode{node("b", "10.0.0.2"), node("a", "10.0.0.1"), node("c", "10.0.0.3"), node("a", "10.0.0.9")} {
		if err := s.Nodes.ChangeNodes([]pools.PoolNode{n}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"c", "never-was"} {
		if err := s.Nodes.ChangeNodes(nil, []string{name}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := reopen(t, s, dir).Nodes.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	want := []pools.PoolNode{node("a", "10.0.0.9"), node("b", "10.0.0.2")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The result of each write is its own: one that cannot be stored does not take
// along those that share its record.
func TestEachWriteHasItsOwnResult(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	errs := make([]error, 200)
	for i := range errs {
		wg.Go(func() {
			name := fmt.Sprintf("node-%03d", i)
			if i%2 == 1 {
				name = strings.Repeat("x", 1<<20)
			}
			errs[i] = s.Nodes.ChangeNodes([]pools.PoolNode{node(name, "10.0.0.1")}, nil)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if bad := i%2 == 1; (err != nil) != bad {
			t.Errorf("write %d: got error %v, want one: %t", i, err, bad)
		}
	}
	all, err := s.Nodes.Nodes()
	if err != nil || len(all) != 100 {
		t.Errorf("got %d nodes and error %v, want 100", len(all), err)
	}
}

func TestAfterClose(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{node("a", "10.0.0.1")}, nil); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("ChangeNodes: got %v, want ErrClosed", err)
	}
	if err := commit(s.Leases, plan(1), addr(1), epoch); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("Commit: got %v, want ErrClosed", err)
	}
	s.Leases.Release(plan(1), addr(1), epoch) // nobody is told, but in the log
	if _, err := s.Boots.Issue(plan(1)); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("Issue: got %v, want ErrClosed", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestOpenMakesPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	open(t, dir)
	for path, want := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, filepath.Join(dir, state.FileName): 0o600} {
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode() != want {
			t.Errorf("%s: got mode %s, want %s", path, fi.Mode(), want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		want    string
	}{
		{"state in use", func(t *testing.T, dir string) { open(t, dir) }, "another drover is running"},
		{"newer format", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, state.FileName), []byte("drover state, format 4\nmore"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "written by a newer drover (format 4, this one knows 3)"},
		{"no format number", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, state.FileName), []byte("drover state, format new\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, `format version "new" is not a number`},
		{"not a state file", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, state.FileName), make([]byte, 1<<16), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a state file of drover"},
		{"broken node", func(t *testing.T, dir string) {
			put(t, dir, wal.Change{Table: tableNodes, Key: []byte("a"), Value: []byte("{")})
		}, `value of "a": unexpected end of JSON input: the state is damaged: restore the directory from a backup; or, to go on without what is lost, run: touch `},
		{"directory is a file", func(t *testing.T, dir string) {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			tt.prepare(t, dir)
			s, err := state.Open(dir, testOptions(state.Options{LockTimeout: time.Millisecond}))
			if err == nil {
				shut(t, s)
				t.Fatalf("opened; want an error with %q", tt.want)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want it to hold %q", err, tt.want)
			}
		})
	}
}

// The tables as they are numbered on disk.
const (
	tableNodes wal.TableID = iota + 1
	tableLeases
	tableBoots
	tableUnknowns
	tableNext
	tableAudit
	tableLeases6
	tableRetired
	tableConfigs
	tableChannels
	tableTrials
)

// put puts values into a state directory, whatever they are.
func put(t *testing.T, dir string, changes ...wal.Change) {
	t.Helper()
	l := &wal.Log{Dir: dir, Size: 1 << 20, Logger: slog.New(slog.DiscardHandler), Tables: map[wal.TableID]wal.Table{}}
	for id := tableNodes; id <= tableTrials; id++ {
		l.Tables[id] = wal.Table{
			Load: func(_, _ []byte) error { return errors.New("not an empty state") },
			Each: func(func(key, value []byte), func() error) error { return nil },
		}
	}
	err := l.Open()
	if err == nil {
		var ticket wal.Ticket
		if ticket, err = l.Put(changes...); err == nil {
			err = l.Wait(ticket)
		}
		err = errors.Join(err, l.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
