package backup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/state"
	"drover/state/backup"
	"drover/state/wal"
)

func open(t *testing.T, dir string) *state.Store {
	t.Helper()
	s, err := state.Open(dir, state.Options{LogSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func node(i int) pools.PoolNode {
	return pools.PoolNode{Pool: "web", Node: pools.Node{Name: fmt.Sprintf("n%05d", i), MACs: []pools.MAC{{2, 0, 0, 0, byte(i >> 8), byte(i)}},
		IP: netip.AddrFrom4([4]byte{10, 28, byte(i >> 8), byte(i)})}}
}

func add(t *testing.T, s *state.Store, i int) {
	t.Helper()
	if err := s.Nodes.ChangeNodes([]pools.PoolNode{node(i)}, nil); err != nil {
		t.Fatal(err)
	}
}

// names returns the nodes of a state directory.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	var log fixture.Log
	s, err := state.Open(dir, state.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Nodes.Nodes()
	if err != nil || s.Damage() > 0 || strings.Contains(log.String(), "left out") {
		t.Errorf("%d damaged parts, %v, %s", s.Damage(), err, log.String())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, n := range all {
		out = append(out, n.Name)
	}
	slices.Sort(out)
	return out
}

// write writes a backup and returns its path.
func write(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup")
	if _, err := backup.Write(dir, path, "v1", time.Now()); err != nil {
		t.Fatal(err)
	}
	return path
}

// restore restores a backup into dir.
func restore(t *testing.T, path, dir string) {
	t.Helper()
	b, err := backup.Read(path)
	if err == nil {
		err = b.Stage(dir)
	}
	if err == nil {
		_, err = backup.Finish(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhileItChanges: a backup of a state that changes all the time has each change that was
// acknowledged before it began, of the snapshots and logs that begin meanwhile too.
func TestWhileItChanges(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "nodes.key"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	written, stop, ended := make(chan int, 1), make(chan bool), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			if err := s.Nodes.ChangeNodes([]pools.PoolNode{node(i % 3000)}, nil); err != nil {
				ended <- err
				return
			}
			select {
			case <-stop:
				ended <- nil
				return
			case <-written: // the newest number only
			default:
			}
			written <- i
		}
	}()
	for range 12 {
		n := <-written
		path := write(t, dir)
		copied := t.TempDir()
		restore(t, path, copied)
		got := names(t, copied)
		for i := range min(n, 2999) + 1 {
			if _, ok := slices.BinarySearch(got, node(i).Name); !ok {
				t.Fatalf("node %d of %d is not in the backup, which has %d", i, n, len(got))
			}
		}
		if key, err := os.ReadFile(filepath.Join(copied, "nodes.key")); string(key) != "key" {
			t.Errorf("got the key %q, %v", key, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("got %v, %v", info.Mode(), err)
		}
	}
	close(stop)
	select {
	case <-written:
	default:
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// small returns a state directory with a few nodes, and its backup.
func small(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	for i := range 5 {
		add(t, s, i)
	}
	return dir, write(t, dir)
}

// TestDamage: no damage to a backup goes unnoticed.
func TestDamage(t *testing.T) {
	_, path := small(t)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Read(path); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, data []byte) {
		t.Helper()
		bad := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(bad, data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := backup.Read(bad)
		if err == nil && bytes.Equal(flatten(b), flatten(must(backup.Read(path)))) {
			return // a bit of the header that means nothing, such as the operating system
		}
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		at, bad := r.IntN(len(good)), bytes.Clone(good)
		bad[at] ^= 1 << r.IntN(8)
		refused(fmt.Sprintf("a bit at %d", at), bad)
	}
	for range 100 {
		n := r.IntN(len(good))
		refused(fmt.Sprintf("cut off at %d", n), good[:n])
	}
	refused("more bytes", append(bytes.Clone(good), 0))
	refused("twice", append(bytes.Clone(good), good...))
}

// flatten returns the list of a backup's files, which has their digests.
func flatten(b *backup.Backup) []byte {
	text, _ := json.Marshal(b.Manifest)
	return text
}

func must(b *backup.Backup, err error) *backup.Backup {
	if err != nil {
		panic(err)
	}
	return b
}

// pack writes a backup of some files, with a manifest that fits unless it is given.
func pack(t *testing.T, m *backup.Manifest, files ...wal.File) string {
	t.Helper()
	if m == nil {
		m = &backup.Manifest{Format: 1}
	}
	for _, f := range files {
		sum := sha256.Sum256(f.Data)
		m.Files = append(m.Files, backup.File{Name: f.Name, Size: int64(len(f.Data)), SHA256: hex.EncodeToString(sum[:])})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := backup.Pack(&b, append(files, wal.File{Name: "backup.json", Data: text}), time.Now()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRefused: a backup of a newer drover, of hostile names, or without a good state.
func TestRefused(t *testing.T) {
	format := func(text string) wal.File { return wal.File{Name: "drover.db", Data: []byte(text)} }
	current := format("drover state, format 3\n")
	for want, path := range map[string]string{
		"written by a newer drover (v9, format 2, this one knows 1)": pack(t, &backup.Manifest{Format: 2, Version: "v9"}, current),
		"it has no state":                       pack(t, nil),
		`it has the entry "../x"`:               pack(t, nil, current, wal.File{Name: "../x"}),
		`it has the entry "/etc/passwd"`:        pack(t, nil, current, wal.File{Name: "/etc/passwd"}),
		`it has the entry "accept-loss"`:        pack(t, nil, current, wal.File{Name: "accept-loss"}),
		`it has the entry ".hidden"`:            pack(t, nil, current, wal.File{Name: ".hidden"}),
		`it has the entry "nodes.key"`:          pack(t, nil, current, wal.File{Name: "nodes.key"}, wal.File{Name: "nodes.key"}),
		"lists 2":                               pack(t, &backup.Manifest{Format: 1, Files: []backup.File{{Name: "x"}}}, current),
		"written by a newer drover (format 4, ": pack(t, nil, format("drover state, format 4\n")),
		"it is not a backup of drover":          filepath.Join(sourceOf(t), "backup_test.go"),
		"not a regular file":                    t.TempDir(),
		"the state in the backup":               pack(t, nil, current, wal.File{Name: "drover.1.snap", Data: []byte("no snapshot")}, wal.File{Name: "drover.1.log", Data: []byte("no log")}),
	} {
		b, err := backup.Read(path)
		if err == nil {
			_, err = b.Try(t.TempDir())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func sourceOf(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNoBackup: Write replaces nothing but a backup, and reads no damaged state.
func TestNoBackup(t *testing.T) {
	dir, path := small(t)
	if _, err := backup.Write(dir, path, "v2", time.Now()); err != nil {
		t.Errorf("a backup is replaced by a newer one: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	cut := t.TempDir()
	restore(t, path, cut)
	snapshots, err := filepath.Glob(filepath.Join(cut, "*.snap"))
	if err != nil || len(snapshots) != 1 {
		t.Fatal(snapshots, err)
	}
	if err := os.Truncate(snapshots[0], 10); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, path, want string }{
		{dir, other, "exists and is no backup"},
		{dir, link, "not a regular file"},
		{dir, filepath.Join(dir, "b"), "is in the state directory"},
		{dir, filepath.Join(dir, "none", "b"), "no such file"},
		{t.TempDir(), filepath.Join(t.TempDir(), "b"), "is it the state directory of a server that has run?"},
		{cut, filepath.Join(t.TempDir(), "b"), "cut off at offset 0"},
	} {
		_, err := backup.Write(tt.dir, tt.path, "v1", time.Now())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.path, err, tt.want)
		}
	}
	if text, err := os.ReadFile(other); string(text) != "mine" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestRunning: a directory that a server uses is not touched.
func TestRunning(t *testing.T) {
	dir, path := small(t)
	if err := must(backup.Read(path)).Stage(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Finish(dir); err == nil || !strings.Contains(err.Error(), "is locked") {
		t.Errorf("got %v, want that it is locked", err)
	}
}

// killedEnv names the step after which a process of TestKilled kills itself.
const killedEnv = "DROVER_TEST_KILLED"

// TestKilled: a restore that is killed after any of its steps is finished by the next start.
func TestKilled(t *testing.T) {
	if at, err := strconv.Atoi(os.Getenv(killedEnv)); err == nil {
		n := 0
		_ = backup.FinishBy(os.Getenv(killedEnv+"_DIR"), func() {
			if n++; n == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		})
		return
	}
	_, path := small(t)
	want := []string{"n00000", "n00001", "n00002", "n00003", "n00004"}
	for at, killed := 1, true; killed; at++ {
		dir := t.TempDir()
		s, err := state.Open(dir, state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, 77)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); !slices.Equal(got, []string{"n00077"}) {
			t.Fatalf("before: got %q", got)
		}
		if err := must(backup.Read(path)).Stage(dir); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), killedEnv+"="+strconv.Itoa(at), killedEnv+"_DIR="+dir)
		err = cmd.Run()
		killed = err != nil
		if killed && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("step %d: %v", at, err)
		}
		if _, err := backup.Finish(dir); err != nil {
			t.Fatalf("step %d: %v", at, err)
		}
		if got := names(t, dir); !slices.Equal(got, want) {
			t.Errorf("killed after step %d: got %q, want %q", at, got, want)
		}
		if _, err := os.Lstat(filepath.Join(dir, backup.Pending)); err == nil {
			t.Errorf("step %d: %s is still there", at, backup.Pending)
		}
		if at == 1 && !killed {
			t.Error("the process was not killed: it had no step")
		}
	}
}
