package backup_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	command "drover/cmd/drover/backup"
	"drover/cmd/drover/cli"
	"drover/e2e/clitest"
	"drover/e2e/fixture"
	"drover/pools"
	"drover/state"
	"drover/state/backup"
	"drover/web/answer"
)

func commands() []*cobra.Command { return command.Commands("v1-test") }

// change adds a node to the state in a directory.
func change(t *testing.T, dir string, number byte) {
	t.Helper()
	s, err := state.Open(dir, state.Options{LogSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	n := pools.PoolNode{Pool: "web", Node: pools.Node{Name: fmt.Sprintf("n%d", number), MACs: []pools.MAC{{2, 0, 0, 0, 0, number}}, IP: netip.AddrFrom4([4]byte{10, 28, 0, number})}}
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{n}, nil); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// wantNodes fails the test unless the state in a directory has so many nodes.
func wantNodes(t *testing.T, dir string, want int) {
	t.Helper()
	s, err := state.Open(dir, state.Options{LogSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if all, err := s.Nodes.Nodes(); err != nil || len(all) != want {
		t.Errorf("%s has %d nodes, %v; want %d", dir, len(all), err, want)
	}
}

// site makes a working directory with a backup of one node, and a state that has another one
// since. Commands ask a server that answers nothing.
func site(t *testing.T) *clitest.Server {
	t.Helper()
	s := clitest.Serve(t, nil)
	t.Chdir(t.TempDir())
	change(t, "state", 1)
	if got := clitest.Run(t, commands(), "", "backup one.backup --state state"); got.Code != 0 || got.Err != "" || !strings.HasSuffix(got.Out, "; it has secrets\n") {
		t.Fatalf("%+v", got)
	}
	fixture.WantMode(t, "one.backup", 0o600)
	change(t, "state", 2)
	return s
}

// TestRefused: a wrong command line, a bad backup and an answer that is no change nothing, and
// leave nothing behind.
func TestRefused(t *testing.T) {
	s := site(t)
	text := fixture.ReadFile(t, "one.backup")
	for name, content := range map[string]string{"cut.backup": text[:300], "farm.yaml": "pools: []\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clitest.Check(t, s, commands,
		clitest.Case{Line: "backup", Code: cli.Usage, Err: "accepts 1 arg"},
		clitest.Case{Line: "restore", Code: cli.Usage, Err: "accepts 1 arg"},
		clitest.Case{Line: "restore one.backup --now --at-restart", Code: cli.Usage, Err: "at-restart"},
		clitest.Case{Line: "restore one.backup --check --now", Code: cli.Usage, Err: "check"},
		clitest.Case{Line: "backup farm.yaml --state state", Code: cli.Failed, Err: "farm.yaml exists and is no backup"},
		clitest.Case{Line: "backup state/x --state state", Code: cli.Failed, Err: "is in the state directory"},
		clitest.Case{Line: "backup x --state nowhere", Code: cli.Failed, Err: "no such file"},
		clitest.Case{Line: "restore cut.backup --state state -y", Code: cli.Failed, Err: "the backup is damaged"},
		clitest.Case{Line: "restore farm.yaml --state state -y --now", Code: cli.Failed, Err: "it is not a backup of drover"},
		clitest.Case{Line: "restore one.backup --state state", In: "n\n", Code: cli.Failed, Err: "with 1 nodes of the API? [y/N] \ndrover: nothing is done"},
		clitest.Case{Line: "restore one.backup --state state --now", In: "n\n", Code: cli.Failed, Err: "nothing is done"},
		clitest.Case{Line: "restore one.backup --state state --at-restart", Code: cli.Usage, Err: "there was no answer"},
		clitest.Case{Line: "restore one.backup --state new/state", In: "n\n", Code: cli.Failed, Err: "nothing is done"},
		clitest.Case{Line: "restore one.backup --state state --now -y", Code: cli.Failed, Err: "nothing is at POST",
			Asked: `POST /api/v1/state:restore {"sha256":"` + sumOf(t, "one.backup") + `"}`},
	)
	for _, path := range []string{"new", "x", "state/" + backup.Proposed, "state/" + backup.Pending} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("there is a %s", path)
		}
	}
	wantNodes(t, "state", 2)
}

// sumOf returns the SHA-256 of a backup, as it is proposed to a server.
func sumOf(t *testing.T, file string) string {
	t.Helper()
	b, err := backup.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := b.Propose(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestRestore(t *testing.T) {
	site(t)
	for _, tt := range []struct {
		line, says string
		after      int // nodes
	}{
		{"restore one.backup --state state --check", "1 nodes of the API: is a good backup\n", 2},
		{"restore one.backup --state nowhere --check", "is a good backup\n", -1},
		{"restore one.backup --state new/state -y", "restored\n", 1},
		{"restore one.backup --state state --at-restart -y", "from the next start of drover on\n", 2},
		{"restore one.backup --state state -y", "restored\n", 1},
	} {
		_, words, _ := strings.Cut(tt.line, "--state ")
		dir, _, _ := strings.Cut(words, " ")
		got := clitest.Run(t, commands(), "", tt.line)
		if got.Code != 0 || got.Err != "" || !strings.HasSuffix(got.Out, tt.says) {
			t.Errorf("drover %s: %+v, want %q", tt.line, got, tt.says)
		}
		if tt.after < 0 {
			if _, err := os.Lstat(dir); err == nil {
				t.Errorf("a check has made %s", dir)
			}
			continue
		}
		wantNodes(t, dir, tt.after)
	}
}

// TestRunning: the state of a server that runs is not touched without --now or --at-restart, and
// not asked about either.
func TestRunning(t *testing.T) {
	s := site(t)
	store, err := state.Open("state", state.Options{LogSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	clitest.Check(t, s, commands, clitest.Case{Line: "restore one.backup --state state", In: "y\n", Code: cli.Failed, Err: "another drover is running with this state directory: stop it first"})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	wantNodes(t, "state", 2)
}

// TestNow: the command ends when the server has taken the backup and answers again, also if
// that refuses the token: the one of the backup may be another.
func TestNow(t *testing.T) {
	site(t)
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Method == http.MethodGet { // the token is another one now
			answer.Write(w, &answer.Error{Code: http.StatusUnauthorized, Msg: "no token"})
			return
		}
		var req pools.RestoreRequest
		err := json.NewDecoder(r.Body).Decode(&req)
		if err == nil {
			err = backup.Accept("state", req.SHA256)
		}
		if err == nil {
			_, err = backup.Finish("state")
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(srv.Close)
	t.Setenv("DROVER_API", srv.URL)
	got := clitest.Run(t, commands(), "", "restore one.backup --state state --now -y")
	if got.Code != 0 || asked.Load() != 2 || !strings.HasSuffix(got.Out, "1 nodes of the API: the server has begun anew with it\n") {
		t.Errorf("%+v, %d requests", got, asked.Load())
	}
	wantNodes(t, "state", 1)
}
