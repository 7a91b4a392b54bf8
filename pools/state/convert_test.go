package state_test

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/state"
)

// TestConvert opens a state directory that a drover of format 2 left when it was
// killed: 60 leases, some of them in its journals alone.
func TestConvert(t *testing.T) {
	old := files(t, "testdata/format2")
	halfway := maps.Clone(old) // a conversion that a crash ended
	halfway["drover.1.log"], halfway["drover.1.snap"] = "x", "y"
	halfway["drover.db.old"] = old["drover.db"]
	for what, content := range map[string]map[string]string{"as it was": old, "after a crash": halfway} {
		t.Run(what, func(t *testing.T) {
			dir := write(t, content)
			var log fixture.Log
			s, err := state.Open(dir, testOptions(state.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := log.String(), "state of an earlier version converted"; !strings.Contains(got, want) {
				t.Errorf("the log is\n%swant %q", got, want)
			}
			for range 2 {
				wantConverted(t, s)
				s = reopen(t, s, dir)
			}
			shut(t, s)
			got := names(t, dir)
			want := []string{"drover.db", "drover.db.old", "leases.0.log.old", "leases.1.log.old"}
			got = slices.DeleteFunc(got, func(name string) bool { return strings.HasSuffix(name, ".snap") || strings.HasSuffix(name, ".log") })
			if !slices.Equal(got, want) {
				t.Errorf("beside the new files: got %q, want %q", got, want)
			}
			if kept, err := os.ReadFile(filepath.Join(dir, "drover.db.old")); err != nil || string(kept) != old["drover.db"] {
				t.Errorf("drover.db.old is not what drover.db was: %v", err)
			}
			// An older drover opens no directory of this format.
			if db, err := bbolt.Open(filepath.Join(dir, state.FileName), 0o600, nil); err == nil {
				t.Errorf("an older drover would start: %v", db.Close())
			}
		})
	}
}

func wantConverted(t *testing.T, s *state.Store) {
	t.Helper()
	if got := len(s.Leases.List()); got != 60 {
		t.Errorf("got %d leases, want 60", got)
	}
	for n := 1; n <= 60; n++ {
		want := addr(n)
		if n == 8 {
			want = addr(80) // it moved
		}
		got, held := s.Leases.Holds(mac(n), epoch)
		if held != (n != 7) || held && got != want { // 7 gave its address back
			t.Errorf("machine %d holds %s, %t; want %s", n, got, held, want)
		}
	}
	nodes, err := s.Nodes.Nodes()
	if err != nil || len(nodes) != 2 || nodes[1].Name != "b" {
		t.Errorf("got nodes %+v, %v; want a and b", nodes, err)
	}
	if got := s.NextBoots.Of("m1"); got != pools.NextRescue {
		t.Errorf("next boot: got %q", got)
	}
	if all, err := s.Audit.List(10); err != nil || len(all) != 1 || all[0].Node != "n1" {
		t.Errorf("audit: got %+v, %v", all, err)
	}
	if all := s.Unknowns.List(); len(all) != 1 || all[0].Count != 3 || all[0].Class != "PXEClient" {
		t.Errorf("unknown machines: got %+v", all)
	}
	if r, ok := s.Boots.Current(mac(1)); !ok || len(r.Steps) != 1 {
		t.Errorf("boot: got %+v, %t", r, ok)
	}
}

// FuzzBolt: M5: a state file of an earlier version is read to its end, whatever the disk
// made of it, and no page is read twice.
func FuzzBolt(f *testing.F) {
	whole, err := os.ReadFile("testdata/format2/drover.db")
	if err != nil {
		f.Fatal(err)
	}
	if keys, lost, err := state.ReadBolt(whole); keys < 60 || lost != 0 || err != nil {
		f.Fatalf("got %d keys, %d lost parts, %v", keys, lost, err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, lost, err := state.ReadBolt(content)
		if limit := len(content) / 8; keys > limit || lost > limit {
			t.Errorf("%d bytes: %d keys, %d lost parts, %v", len(content), keys, lost, err)
		}
	})
}
