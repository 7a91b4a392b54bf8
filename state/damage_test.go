package state_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/state"
	"drover/state/wal"
)

// openLogged opens a state, and returns it with its log.
func openLogged(t *testing.T, dir string) (*state.Store, *fixture.Log) {
	t.Helper()
	var log fixture.Log
	s, err := state.Open(dir, testOptions(state.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	return s, &log
}

// wantRefusal opens a state that may have lost nodes. It fails unless the error names
// the remedies, and the second one works. It returns the state after that.
func wantRefusal(t *testing.T, dir, part string, o state.Options) *state.Store {
	t.Helper()
	s, err := state.Open(dir, testOptions(o))
	if err == nil {
		shut(t, s)
		t.Fatalf("opened; want an error with %q", part)
	}
	accept := filepath.Join(dir, state.AcceptLossFile)
	fixture.WantText(t, "error", err.Error(), part, "restore the directory from a backup; or, to go on without what is lost, run: touch "+accept)
	if err := os.WriteFile(accept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = state.Open(dir, testOptions(o)); err != nil {
		t.Fatalf("with %s: %v", accept, err)
	}
	if _, err := os.Stat(accept); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", accept, err)
	}
	t.Cleanup(func() { shut(t, s) })
	return s
}

// lived returns the files of a state that was killed. Its snapshot has machines 1 to 20,
// its log machines 21 to 40 and node "late"; both have all other tables. ends are the
// ends of the records of machines 20 to 40.
func lived(t *testing.T) (all map[string]string, ends []int64) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	more := func(n int) {
		nonce, err := s.Boots.Issue(plan(n))
		do(err)
		do(s.Boots.Claim(mac(n), nonce, []byte("key")))
		s.Unknowns.Seen(seen(n, n))
		do(s.Unknowns.Flush())
		do(s.NextBoots.Set(pools.NextRescue, fmt.Sprint("m", n)))
		do(s.Audit.Add(pools.AuditEntry{Time: epoch, Actor: "token", Action: "power on", Node: fmt.Sprint("m", n), Result: "on"}))
	}
	do(s.Nodes.ChangeNodes([]pools.PoolNode{node("early", "10.0.0.1")}, nil))
	leaseAll(t, s, 1, 20)
	more(1)
	s = reopen(t, s, dir)
	more(21)
	for n := 20; n <= 40; n++ {
		leaseAll(t, s, n, n)
		_, _, end := currentLog(t, dir)
		ends = append(ends, end)
	}
	do(s.Nodes.ChangeNodes([]pools.PoolNode{node("late", "10.0.0.2")}, nil))
	leaseAll(t, s, 41, 41)
	return files(t, copyState(t, dir)), ends
}

// M7: a damaged record of the log loses its own changes alone. The log says how many
// bytes were left out, and the damaged file is kept.
func TestDamagedRecord(t *testing.T) {
	all, ends := lived(t)
	for _, n := range []int{21, 30, 40} {
		t.Run(fmt.Sprint("machine ", n), func(t *testing.T) {
			dir := write(t, all)
			edited := all["drover.2.log"]
			if err := os.WriteFile(filepath.Join(dir, "drover.2.log"), []byte(flip(edited, int(ends[n-20])-10)), 0o600); err != nil {
				t.Fatal(err)
			}
			s, log := openLogged(t, dir)
			for m := 1; m <= 41; m++ {
				if _, ok := s.Leases.Of(mac(m)); ok != (m != n) {
					t.Errorf("machine %d: lease is there: %t", m, ok)
				}
			}
			if got := s.Damage(); got != 1 {
				t.Errorf("got %d damaged parts, want 1", got)
			}
			bytes := ends[n-20] - ends[n-21]
			fixture.WantText(t, "log", log.String(), fmt.Sprintf("drover.2.log: damaged record at offset %d, %d bytes", ends[n-21], bytes))
			if kept := fixture.ReadFile(t, filepath.Join(dir, "drover.2.log.damaged")); kept != flip(edited, int(ends[n-20])-10) {
				t.Error("drover.2.log.damaged is not the damaged file")
			}
			wantNodes(t, s, "early", "late")
			if got := reopen(t, s, dir).Damage(); got != 0 {
				t.Errorf("after a restart: got %d damaged parts, want 0", got)
			}
		})
	}
}

func wantNodes(t *testing.T, s *state.Store, want ...string) {
	t.Helper()
	nodes, err := s.Nodes.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range nodes {
		got = append(got, n.Name)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got the nodes %q, want %q", got, want)
	}
}

// M4: only a record with nodes is worth a refusal, also when it is the last one.
func TestDamagedNode(t *testing.T) {
	all, _ := lived(t)
	for file, names := range map[string][2]string{"drover.2.snap": {"early", "late"}, "drover.2.log": {"late", "early"}} {
		t.Run(file, func(t *testing.T) {
			content := all[file]
			at := strings.Index(content, fmt.Sprintf(`"name":%q`, names[0]))
			if at < 0 {
				t.Fatalf("%s is not in the file", names[0])
			}
			dir := write(t, all)
			if err := os.WriteFile(filepath.Join(dir, file), []byte(flip(content, at+9)), 0o600); err != nil {
				t.Fatal(err)
			}
			s := wantRefusal(t, dir, "which may have had nodes of the API", state.Options{})
			wantNodes(t, s, names[1])
			if got := len(s.Leases.List()); got != 41 {
				t.Errorf("got %d leases, want 41", got)
			}
			wantNodes(t, reopen(t, s, dir), names[1])
		})
	}
	t.Run("the last record", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		if err := s.Nodes.ChangeNodes([]pools.PoolNode{node("last", "10.0.0.2")}, nil); err != nil {
			t.Fatal(err)
		}
		all := files(t, copyState(t, dir))
		all["drover.1.log"] = flip(all["drover.1.log"], strings.Index(all["drover.1.log"], `"last"`))
		wantNodes(t, wantRefusal(t, write(t, all), "drover.1.log: a damaged record before offset", state.Options{}))
	})
	t.Run("a log is missing", func(t *testing.T) {
		dir := write(t, all)
		if err := os.Remove(filepath.Join(dir, "drover.2.log")); err != nil {
			t.Fatal(err)
		}
		s := wantRefusal(t, dir, "drover.2.log is missing", state.Options{})
		wantNodes(t, s, "early")
	})
}

// M4: damage to any other value of a snapshot loses that value alone.
func TestDamagedValue(t *testing.T) {
	all, _ := lived(t)
	content := all["drover.2.snap"]
	for what, text := range map[string]string{
		"lease": "catchall", "boot": `"nonceHash"`, "unknown": `"firmware"`, "audit": `"power on"`, "next boot": `"rescue"`,
	} {
		t.Run(what, func(t *testing.T) {
			if what == "unknown" {
				text = `"mac":"` + mac(1).String() + `","first"`
			}
			at := strings.Index(content, text)
			if at < 0 {
				t.Fatalf("%q is not in the snapshot", text)
			}
			dir := write(t, all)
			if err := os.WriteFile(filepath.Join(dir, "drover.2.snap"), []byte(flip(content, at)), 0o600); err != nil {
				t.Fatal(err)
			}
			s, log := openLogged(t, dir)
			fixture.WantText(t, "log", log.String(), "drover.2.snap: damaged record at offset ")
			want := map[string]int{"lease": 41, "boot": 2, "unknown": 2, "audit": 2, "next boot": 2}
			want[what]--
			audit, _ := s.Audit.List(10)
			got := map[string]int{"lease": len(s.Leases.List()), "boot": len(s.Boots.List()), "unknown": len(s.Unknowns.List()), "audit": len(audit)}
			for _, n := range []string{"m1", "m21"} {
				if s.NextBoots.Of(n) != "" {
					got["next boot"]++
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", got, want)
			}
			wantNodes(t, s, "early", "late")
		})
	}
}

// M4: values that cannot be read are left out, and the rest is in use.
func TestDamagedValues(t *testing.T) {
	for what, tt := range map[string]struct {
		table           wal.TableID
		key, value, log string
	}{
		"lease":           {tableLeases, "\x0a\x00\x00\x01", "{", "lease 0a000001"},
		"lease cut off":   {tableLeases, "\x0a\x00\x00\x01", strings.Repeat("\x00", 23), "lease 0a000001"},
		"lease of IPv6":   {tableLeases6, "\x0a", "{", "lease 0a"},
		"boot":            {tableBoots, "x", `{"record":{"id":"x","mac":"52:54:00:00:00:01"}}`, `boot \"x\"`},
		"unknown machine": {tableUnknowns, "\x52\x54\x00\x00\x00\x01", "{", `value of \"RT`},
		"next boot":       {tableNext, "m1", "{", `value of \"m1\"`},
		"audit":           {tableAudit, "\xff\xff\xff\xff\xff\xff\xff\xff", "{", "table 6: value of"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			good := wal.Change{Table: tableNodes, Key: []byte("a"), Value: []byte(`{"name":"a","pool":"p","ip":"10.0.0.9"}`)}
			put(t, dir, wal.Change{Table: tt.table, Key: []byte(tt.key), Value: []byte(tt.value)}, good)
			s, log := openLogged(t, dir)
			fixture.WantText(t, "log", log.String(), "the state is damaged; left out", tt.log)
			wantNodes(t, s, "a")
			if s.Damage() != 1 {
				t.Errorf("got %d damaged parts, want 1", s.Damage())
			}
		})
	}
}

// use calls everything that a server asks a state for.
func use(t *testing.T, s *state.Store) {
	t.Helper()
	s.Leases.List()
	s.Leases.ByPool(epoch)
	s.Boots.List()
	s.Unknowns.List()
	s.NextBoots.Of("m1")
	_, err := s.Audit.List(100)
	_, err2 := s.Nodes.Nodes()
	err = errors.Join(err, err2, s.Nodes.ChangeNodes([]pools.PoolNode{node("new", "10.0.0.99")}, nil),
		commit(s.Leases, plan(200), addr(200), epoch), s.Audit.Add(pools.AuditEntry{Node: "m1"}),
		s.Boots.Step(mac(1), "", boots.Event{Step: boots.StepLoader}))
	if err != nil && !errors.Is(err, boots.ErrNoBoot) {
		t.Errorf("a state that was opened does not work: %v", err)
	}
	shut(t, s)
}

// M5: whatever the disk did to a file, the state opens and works, or the error explains
// it. The time on a small disk of RAM is some seconds; make attack tries every length
// and more bits.
func TestAnyDamage(t *testing.T) {
	current, _ := lived(t)
	if dir := "/dev/shm"; fixture.Writable(dir) {
		t.Setenv("TMPDIR", dir) // no test of the disk
	}
	random := rand.New(rand.NewPCG(13, 5))
	for file, all := range map[string]map[string]string{
		"drover.2.log": current, "drover.2.snap": current, "drover.db": current,
	} {
		t.Run(file, func(t *testing.T) {
			file := strings.TrimSpace(file)
			content := all[file]
			used := len(strings.TrimRight(content, "\x00"))
			refused, tried := 0, 0
			try := func(what, damaged string) {
				t.Helper()
				tried++
				dir := t.TempDir()
				for name, c := range all {
					if name == file {
						c = damaged
					}
					if err := os.WriteFile(filepath.Join(dir, name), []byte(c), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				s, err := state.Open(dir, testOptions(state.Options{LogSize: 1 << 10, Keys: []string{"drover.2.log"}}))
				if err == nil {
					use(t, s)
				} else if refused++; !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "restore") &&
					!strings.Contains(err.Error(), "upgrade") && !strings.Contains(err.Error(), "remove it") {
					t.Errorf("%s: the error names no file or no remedy: %v", what, err)
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			}
			for n := 0; n <= used; n += 1 + random.IntN(fixture.Attack(1+used/25, 1+used/4096)) {
				try(fmt.Sprintf("cut off after %d bytes", n), content[:n])
			}
			for range fixture.Attack(50, 500) {
				at := random.IntN(used)
				b := []byte(content)
				b[at] ^= 1 << random.IntN(8)
				try(fmt.Sprintf("a bit of byte %d", at), string(b))
			}
			t.Logf("%d of %d refused", refused, tried)
		})
	}
}

// M6: a state that is empty or missing beside keys of an earlier server is an error, and
// so is one whose snapshots are missing.
func TestMissingState(t *testing.T) {
	all, _ := lived(t)
	all["api.token"] = "secret"
	keys := state.Options{Keys: []string{"nodes.key", "api.token"}}
	only := func(names ...string) map[string]string {
		some := map[string]string{"api.token": "secret"}
		for _, n := range names {
			some[n] = all[n]
		}
		return some
	}
	for what, content := range map[string]map[string]string{
		"all is gone":            only(),
		"the state file is left": only("drover.db"),
		"the log is left":        only("drover.db", "drover.2.log"),
		"an empty file":          {"api.token": "secret", "drover.db": ""},
	} {
		t.Run(what, func(t *testing.T) {
			dir := write(t, content)
			s := wantRefusal(t, dir, "has no state, but ", keys)
			if what == "the log is left" {
				wantNodes(t, s, "late")
			} else {
				wantNodes(t, s)
			}
			use(t, s)
			if s, err := state.Open(dir, testOptions(keys)); err != nil {
				t.Errorf("the new state: %v", err)
			} else {
				shut(t, s)
			}
		})
	}
	t.Run("the state file alone is gone", func(t *testing.T) {
		for _, content := range []string{"missing", "", "drover state", "xxxxx"} {
			some := only("drover.2.log", "drover.2.snap")
			if content != "missing" {
				some["drover.db"] = content
			}
			dir := write(t, some)
			s, log := openLogged(t, dir)
			wantNodes(t, s, "early", "late")
			fixture.WantText(t, "log", log.String(), "is written again")
			wantNodes(t, reopen(t, s, dir), "early", "late")
		}
	})
	t.Run("a first start", func(t *testing.T) {
		dir := t.TempDir()
		for range 2 {
			s, err := state.Open(dir, testOptions(keys))
			if err != nil {
				t.Fatal(err)
			}
			shut(t, s)
			if err := os.WriteFile(filepath.Join(dir, "api.token"), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A power failure after the next log has begun, and before its snapshot is written, leaves of the
// first log what was made durable. That is no damage.
func TestPowerFailureBetweenTwoLogs(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, testOptions(state.Options{LogSize: 2000}))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	preventSnapshots(t, dir)
	var durable string // the content of the first log
	s.FailWrites(func() error {
		if all := files(t, dir); all["drover.2.log"] == "" {
			durable = all["drover.1.log"]
		}
		return nil
	})
	var want []string
	for !slices.Contains(names(t, dir), "drover.2.log") {
		want = append(want, fmt.Sprintf("n%02d", len(want)))
		if err := s.Nodes.ChangeNodes([]pools.PoolNode{node(want[len(want)-1], "10.0.0.1")}, nil); err != nil {
			t.Fatal(err)
		}
	}
	all := files(t, copyState(t, dir))
	if durable == all["drover.1.log"] {
		t.Fatal("all of the first log is durable")
	}
	all["drover.1.log"] = durable
	again, log := openLogged(t, write(t, all))
	wantNodes(t, again, want...)
	if n := again.Damage(); n > 0 {
		t.Errorf("%d damaged parts:\n%s", n, log.String())
	}
}

// preventSnapshots keeps snapshots from being written.
func preventSnapshots(t *testing.T, dir string) {
	t.Helper()
	for n := range 8 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("drover.%d.snap.tmp", n+2)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// M7: while the next snapshot is not written, two logs have the changes. Damage to the end
// of the first one is found: the second one says where that is, and how many of its
// records had nodes.
func TestDamagedEndOfALog(t *testing.T) {
	// twoLogs makes changes until the second log begins, and some more.
	twoLogs := func(t *testing.T, change func(s *state.Store, n int)) (all map[string]string, last int) {
		t.Helper()
		dir := t.TempDir()
		s, err := state.Open(dir, testOptions(state.Options{LogSize: 2000}))
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, s)
		preventSnapshots(t, dir)
		for generation := uint64(1); generation == 1; _, generation, _ = currentLog(t, dir) {
			last++
			change(s, last)
		}
		change(s, last+1)
		return files(t, copyState(t, dir)), last - 1
	}
	damaged := func(t *testing.T, all map[string]string, text string) (dir string) {
		t.Helper()
		at := strings.LastIndex(all["drover.1.log"], text)
		if _, second := all["drover.2.log"]; at < 0 || !second {
			t.Fatalf("%q is not in the first of two logs", text)
		}
		dir = write(t, all)
		if err := os.WriteFile(filepath.Join(dir, "drover.1.log"), []byte(flip(all["drover.1.log"], at)), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Run("a lease", func(t *testing.T) {
		all, last := twoLogs(t, func(s *state.Store, n int) { leaseAll(t, s, n, n) })
		s, log := openLogged(t, damaged(t, all, "catchall"))
		fixture.WantText(t, "log", log.String(), "drover.1.log: damaged record at offset ")
		for n := 1; n <= last+2; n++ {
			if _, ok := s.Leases.Of(mac(n)); ok != (n != last) {
				t.Errorf("machine %d of %d: lease is there: %t", n, last+2, ok)
			}
		}
	})
	t.Run("a node", func(t *testing.T) {
		name := func(n int) string { return fmt.Sprintf("n%02d", n) }
		all, last := twoLogs(t, func(s *state.Store, n int) {
			if err := s.Nodes.ChangeNodes([]pools.PoolNode{node(name(n), "10.0.0.1")}, nil); err != nil {
				t.Fatal(err)
			}
		})
		s := wantRefusal(t, damaged(t, all, name(last)), "which may have had nodes of the API", state.Options{})
		var want []string
		for n := 1; n <= last+2; n++ {
			if n != last {
				want = append(want, name(n))
			}
		}
		wantNodes(t, s, want...)
	})
}
