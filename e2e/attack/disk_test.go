package attack_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/attack"
	"drover/e2e/fixture"
)

// TestBlockedLog (H9) gives the server a standard error that no process reads, floods the
// server with DISCOVERs, and boots a machine.
func TestBlockedLog(t *testing.T) {
	l := newLab(t)
	s := l.NewServer(t, fmt.Sprintf(attack.Farm, ""), 1<<20)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() // at the end only: a server whose log is closed would end
	s.Stderr = writer
	s.Start()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	count := 12_000
	if *long {
		count = 200_000
	}
	if _, err := attack.SendDiscovers(l.Wire, count, 4000); err != nil {
		t.Fatal(err)
	}
	boots(t, m2(l))
	s.WantSmall()
}

// TestFullDisk (M3) fills the disk of the state directory. Declared machines still get their
// addresses, /readyz reports the disk, and the server starts on it.
func TestFullDisk(t *testing.T) {
	l := newLab(t)
	s := l.NewServer(t, fmt.Sprintf(attack.Farm, ""), 1<<20)
	if err := os.Mkdir(s.State(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", s.State(), "tmpfs", 0, "size=40m,mode=700"); err != nil {
		fixture.Missing(t, err)
	}
	t.Cleanup(func() {
		s.Kill()
		if err := unix.Unmount(s.State(), 0); err != nil {
			t.Error(err)
		}
	})
	s.Wild = true
	s.Start()
	machine := m2(l)
	boots(t, machine)
	fixture.FillDisk(t, filepath.Join(s.State(), "filler"))
	fixture.Eventually(t, "/readyz to report the full disk", func() bool {
		ready := strings.ToLower(s.Ready())
		return strings.Contains(ready, "space") || strings.Contains(ready, "disk")
	})
	machine.Lease(t, true)

	s.Stop()
	fixture.FillDisk(t, filepath.Join(s.State(), "filler2"))
	s.Start()
	machine.Lease(t, true)
	if machine.Address != attack.MachineIP {
		t.Errorf("on a full disk m2 gets %s", machine.Address)
	}
	if err := errors.Join(os.Remove(filepath.Join(s.State(), "filler")), os.Remove(filepath.Join(s.State(), "filler2"))); err != nil {
		t.Fatal(err)
	}
	boots(t, machine) // without a restart
	s.WantSmall()
}

// TestDamagedState (M4 to M8) flips bits of the state and cuts files off. The server
// starts and serves, or ends with an explanation, and never with a stack trace.
func TestDamagedState(t *testing.T) {
	l := newLab(t)
	s := l.NewServer(t, fmt.Sprintf(attack.Farm, ""), 1<<20)
	s.Wild = true
	whole := lived(t, l, s)
	rounds := 12
	if *long {
		rounds = 300
	}
	random := rand.New(rand.NewPCG(3, uint64(time.Now().UnixNano())))
	served := 0
	for i := range rounds {
		what := damage(t, s.State(), whole, i, random)
		before := len(s.Log())
		s.Launch()
		fixture.Eventually(t, "the server to serve or to end, "+what, func() bool {
			return !s.Running() || s.Health() == nil
		})
		if s.Running() {
			served++
			for _, list := range []string{"leases", "boots", "nodes", "unknown", "audit"} {
				if _, err := s.Call("GET", "/api/v1/"+list, "", nil); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if i%6 == 0 {
				machine := m2(l)
				if machine.Lease(t, true); machine.Address != attack.MachineIP {
					t.Errorf("%s: m2 gets %s", what, machine.Address)
				}
			}
		}
		s.Kill()
		said := s.Log()[before:]
		for _, bad := range []string{"panic:", "fatal error", "goroutine ", "unexpected fault"} {
			if strings.Contains(said, bad) {
				t.Errorf("%s: the server crashed:\n%s", what, said[:min(len(said), 2000)])
			}
		}
		if said == "" {
			t.Errorf("%s: the server ended without a word", what)
		}
	}
	t.Logf("served %d of %d damaged states, refused the rest", served, rounds)
}

// TestEmptyState (M6) empties the files of the state, or removes them. The server does not
// silently begin a new state beside its keys.
func TestEmptyState(t *testing.T) {
	l := newLab(t)
	s := l.NewServer(t, fmt.Sprintf(attack.Farm, ""), 1<<20)
	s.Wild = true
	whole := lived(t, l, s)
	for name, spoil := range map[string]func(path string) error{
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"removed": os.Remove,
	} {
		if err := errors.Join(os.RemoveAll(s.State()), os.Mkdir(s.State(), 0o700)); err != nil {
			t.Fatal(err)
		}
		copyFiles(t, s.State(), whole)
		files, err := filepath.Glob(filepath.Join(s.State(), "drover.*"))
		for _, file := range files {
			err = errors.Join(err, spoil(file))
		}
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files of the state, %v", len(files), err)
		}
		before := len(s.Log())
		s.Launch()
		fixture.Eventually(t, "the server to serve or to end", func() bool { return !s.Running() || s.Health() == nil })
		if s.Running() {
			t.Errorf("with the files of the state %s the server begins anew", name)
		}
		s.Kill()
		if said := s.Log()[before:]; !strings.Contains(said, s.State()) || strings.Contains(said, "goroutine ") {
			t.Errorf("with the files of the state %s the server does not say what is wrong:\n%s", name, said)
		}
	}
}

// lived lets the server serve some boots and changes, kills it, and returns a copy of its
// state.
func lived(t *testing.T, l *attack.Lab, s *attack.Server) string {
	t.Helper()
	s.Start()
	boots(t, m2(l))
	boots(t, &attack.Machine{Net: l.Lobby, MAC: attack.LobbyMAC})
	if _, err := attack.SendDiscovers(l.Wire, 200, 1000); err != nil {
		t.Fatal(err)
	}
	body := `{"pool": "a", "name": "added", "macs": ["52:54:00:77:03:01"], "ip": "10.77.3.1"}`
	if status, err := s.Call("POST", "/api/v1/nodes", body, nil); err != nil || status != 201 {
		t.Fatalf("POST a node: %d, %v", status, err)
	}
	time.Sleep(2 * time.Second) // steps of boots are stored each second
	s.Kill()
	whole := t.TempDir()
	copyFiles(t, whole, s.State())
	return whole
}

// damage replaces the state directory with a copy of another one, damages that in the i-th
// way, and returns a description of the damage.
func damage(t *testing.T, state, whole string, i int, random *rand.Rand) string {
	t.Helper()
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	copyFiles(t, state, whole)
	files, err := filepath.Glob(filepath.Join(state, "drover.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the state has no files: %v", err)
	}
	file := files[i%len(files)]
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	used := len(strings.TrimRight(string(b), "\x00")) // a log is filled with zeros before its use
	what := filepath.Base(file)
	switch {
	case used == 0 || i%4 == 3:
		b, what = b[:random.IntN(used+1)], what+" cut off"
	default:
		at := random.IntN(used)
		b[at] ^= 1 << random.IntN(8)
		what += fmt.Sprintf(", a bit of byte %d of %d", at, used)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return what
}

// copyFiles copies the files of a directory into another.
func copyFiles(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(path)), b, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKilled kills the server after a boot, again and again. The boot stays bound to the
// key that claimed it, and a lease to its machine.
func TestKilled(t *testing.T) {
	l := newLab(t)
	s := l.NewServer(t, fmt.Sprintf(attack.Farm, ""), 1<<20)
	s.Wild = true
	rounds := 3
	if *long {
		rounds = 200
	}
	lobby := &attack.Machine{Net: l.Lobby, MAC: attack.LobbyMAC}
	address := ""
	for i := range rounds {
		s.Start()
		machine := m2(l) // with a new key
		boots(t, machine)
		if boots(t, lobby); address != "" && lobby.Address != address {
			t.Errorf("round %d: the lobby's machine has %s, before %s", i, lobby.Address, address)
		}
		address = lobby.Address
		s.Kill()
		s.Start()
		if err := machine.Configure(t.Context()); err != nil {
			t.Errorf("round %d: the key that claimed the boot gets no config: %v", i, err)
		}
		if err := machine.WithNewKey().Configure(t.Context()); err == nil {
			t.Errorf("round %d: another key gets the config", i)
		}
		s.Kill()
	}
}
