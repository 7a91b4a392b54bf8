package state_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/state"
)

// maxUnknowns is how many the package keeps.
const maxUnknowns = 4096

func seen(n, at int) pools.Unknown {
	return pools.Unknown{MAC: mac(n), Last: epoch.Add(time.Duration(at) * time.Second), Count: 1}
}

func TestUnknowns(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Unknowns.Seen(seen(1, 0))
	s.Unknowns.Seen(seen(2, 1))
	again := pools.Unknown{
		MAC: mac(1), First: epoch.Add(time.Hour), Last: epoch.Add(5 * time.Second), Pool: "catchall", Address: addr(7),
		Firmware: pools.BIOS, Class: "PXEClient", Relay: addr(1), Circuit: "eth1/7", Remote: "sw3",
	}
	s.Unknowns.Seen(again)
	again.First, again.Count = epoch, 2 // the first sight counts, and none is one
	other := seen(2, 1)
	other.First = other.Last
	want := []pools.Unknown{again, other}
	for range 2 {
		if got := s.Unknowns.List(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		s = reopen(t, s, dir)
	}
	if !s.Unknowns.Forget(mac(1)) || s.Unknowns.Forget(mac(1)) {
		t.Error("Forget: want true, then false")
	}
	s = reopen(t, s, dir)
	if got := s.Unknowns.List(); fmt.Sprint(got) != fmt.Sprint(want[1:]) {
		t.Errorf("after Forget: got %+v, want %+v", got, want[1:])
	}
	s.Unknowns.Seen(seen(1, 9))
	if got := s.Unknowns.List(); len(got) != 2 || got[0].Count != 1 || got[0].MAC != mac(1) {
		t.Errorf("seen again: got %+v, want a new one in front", got)
	}
}

func TestUnknownTextIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	u := seen(1, 0)
	long := "\xff" + strings.Repeat("x", 1<<20)
	u.Class, u.Circuit, u.Remote, u.Pool = long, long, long, long
	s.Unknowns.Seen(u)
	got := s.Unknowns.List()[0]
	for _, text := range []string{got.Class, got.Circuit, got.Remote, got.Pool} {
		if len(text) != 128 || text[0] != '?' {
			t.Errorf("got %d bytes, %q", len(text), text)
		}
	}
}

// A flood of made up machines pushes out the oldest.
func TestUnknownsFlood(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	n := 0
	flood := func() {
		for range 3*maxUnknowns/2 + 1 {
			n++
			s.Unknowns.Seen(seen(n, n))
			s.Unknowns.Seen(seen(0, n)) // one that asks again and again stays
		}
		if err := s.Unknowns.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		flood()
	}
	all := s.Unknowns.List()
	if len(all) != maxUnknowns || all[0].MAC != mac(0) || all[0].Count != n || all[1].MAC != mac(n) || all[maxUnknowns-1].MAC != mac(n-maxUnknowns+2) {
		t.Fatalf("got %d: %+v, %+v ... %+v", len(all), all[0], all[1], all[len(all)-1])
	}
	want := fmt.Sprint(all)
	s = reopen(t, s, dir)
	if got := fmt.Sprint(s.Unknowns.List()); len(s.Unknowns.List()) != maxUnknowns || got[:200] != want[:200] {
		t.Errorf("after a restart:\ngot  %.300s\nwant %.300s", got, want)
	}
}

func TestUnknownsAreStoredSoon(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, testOptions(state.Options{FlushEvery: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	s.Unknowns.Seen(seen(1, 0))
	fixture.Eventually(t, "it is on disk", func() bool {
		for _, content := range files(t, dir) {
			if strings.Contains(content, `{"mac":"`+mac(1).String()+`","first":`) {
				return true
			}
		}
		return false
	})
}

// TestDescribe: hardware stays with its machine, in the next DISCOVER and on disk, and
// is recorded of known machines only.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, testOptions(state.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if s.Unknowns.Describe(mac(1), pools.Inventory{Vendor: "HPE"}) {
		t.Error("a machine that was never seen is described")
	}
	s.Unknowns.Seen(seen(1, 0))
	if !s.Unknowns.Describe(mac(1), pools.Inventory{Vendor: "HPE"}) {
		t.Error("a machine that was seen is not described")
	}
	s.Unknowns.Seen(seen(1, 1))
	if v := s.Unknowns.Hardware(mac(1)); v == nil || v.Vendor != "HPE" || s.Unknowns.Hardware(mac(2)) != nil {
		t.Errorf("got hardware %+v", v)
	}
	shut(t, s)
	if s, err = state.Open(dir, testOptions(state.Options{})); err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	if all := s.Unknowns.List(); len(all) != 1 || all[0].Count != 2 || all[0].Inventory == nil || all[0].Inventory.Vendor != "HPE" {
		t.Errorf("got %+v", all)
	}
}

// BenchmarkUnknowns measures a DISCOVER with an invented MAC.
func BenchmarkUnknowns(b *testing.B) {
	s, err := state.Open(b.TempDir(), testOptions(state.Options{}))
	if err != nil {
		b.Fatal(err)
	}
	defer shut(b, s)
	b.ReportAllocs()
	u := pools.Unknown{Last: epoch, Address: netip.MustParseAddr("10.0.0.1"), Class: "PXEClient:Arch:00000:UNDI:002001"}
	for n := range b.N {
		u.MAC = mac(n)
		s.Unknowns.Seen(u)
	}
}
