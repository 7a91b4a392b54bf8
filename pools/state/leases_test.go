package state_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/state"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func mac(n int) pools.MAC {
	return pools.MAC{0x52, 0x54, 0, byte(n >> 16), byte(n >> 8), byte(n)}
}

func addr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }

// plan is what machine n gets of a catch-all pool with the addresses 10.0.0.1
// to 10.0.0.4 and leases of a minute.
func plan(n int) *pools.Plan {
	return &pools.Plan{
		MAC: mac(n), Node: "node-" + mac(n).Hex(), Pool: "catchall", CatchAll: true, Image: "debian-12",
		Range: pools.Range{First: addr(1), Last: addr(4)},
		Lease: pools.Duration(time.Minute),
	}
}

// A story is told step by step, each at its own second after the epoch.
type leaseStep struct {
	what    string
	at      int // seconds
	do      string
	mac     int
	addr    int // wanted or committed; 0 is none
	want    int // offered address
	refused bool
}

func TestLeases(t *testing.T) {
	tests := []struct {
		name     string
		reserved int
		steps    []leaseStep
	}{
		{"a machine grabs the first address and keeps it", 0, []leaseStep{
			{"asks", 0, "offer", 1, 0, 1, false},
			{"takes it", 1, "commit", 1, 1, 0, false},
			{"asks again", 2, "offer", 1, 0, 1, false},
			{"asks for another one", 3, "offer", 1, 3, 1, false},
			{"asks long after it expired", 9999, "offer", 1, 0, 1, false},
		}},
		{"a machine gets the address that it asks for", 0, []leaseStep{
			{"free", 0, "offer", 1, 3, 3, false},
			{"on offer to another", 0, "offer", 2, 3, 1, false},
			{"outside the range", 0, "offer", 3, 9, 2, false},
			{"takes what it was not offered, and nobody else", 0, "commit", 3, 4, 0, false},
			{"leased", 0, "offer", 4, 4, 2, false},
		}},
		{"an offer is held half a minute", 0, []leaseStep{
			{"first", 0, "offer", 1, 0, 1, false},
			{"second", 0, "offer", 2, 0, 2, false},
			{"the first one's offer cannot be stolen", 29, "commit", 2, 1, 0, true},
			{"until it is over", 30, "commit", 2, 1, 0, false},
			{"and now the first must look elsewhere", 31, "offer", 1, 0, 3, false},
			{"the second's own offer was dropped with its lease", 31, "offer", 4, 2, 2, false},
		}},
		{"repeated DISCOVERs get the same offer", 0, []leaseStep{
			{"once", 0, "offer", 1, 0, 1, false},
			{"twice", 1, "offer", 1, 0, 1, false},
			{"in the second half: held anew", 20, "offer", 1, 0, 1, false},
			{"so it is still held", 49, "commit", 2, 1, 0, true},
			{"and over then", 50, "commit", 2, 1, 0, false},
		}},
		{"the oldest expired address goes first", 0, []leaseStep{
			{"1 leases", 0, "commit", 1, 2, 0, false},
			{"2 leases", 1, "commit", 2, 4, 0, false},
			{"3 leases", 2, "commit", 3, 1, 0, false},
			{"4 leases", 3, "commit", 4, 3, 0, false},
			{"1 renews", 4, "commit", 1, 2, 0, false},
			{"all in use", 60, "offer", 5, 0, 0, true},
			{"2's is over", 61, "offer", 5, 0, 4, false},
			{"which is now on offer; 3's is over", 62, "offer", 6, 0, 1, false},
			{"5 takes it", 63, "commit", 5, 4, 0, false},
			{"2 comes back: its own is gone, 4's is over", 63, "offer", 2, 0, 3, false},
			{"all in use or on offer", 63, "offer", 7, 0, 0, true},
			{"3 comes back: its own is on offer", 63, "commit", 3, 1, 0, true},
			{"the offer is over and 3 has its own again", 93, "commit", 3, 1, 0, false},
		}},
		{"an address that was released goes before one that expires", 0, []leaseStep{
			{"", 0, "commit", 1, 1, 0, false},
			{"", 1, "commit", 2, 2, 0, false},
			{"", 2, "commit", 3, 3, 0, false},
			{"", 3, "commit", 4, 4, 0, false},
			{"another's address is not mine to release", 4, "release", 3, 2, 0, false},
			{"so all are in use", 4, "offer", 5, 0, 0, true},
			{"2 gives its own back", 5, "release", 2, 2, 0, false},
			{"2 would get it again", 5, "offer", 2, 0, 2, false},
			{"but does not take it", 40, "offer", 5, 0, 2, false},
			{"", 41, "commit", 5, 2, 0, false},
			{"all in use", 41, "offer", 2, 0, 0, true},
		}},
		{"never outside the range", 0, []leaseStep{
			{"above", 0, "commit", 1, 5, 0, true},
			{"below", 0, "commit", 1, 0, 0, true},
		}},
		{"an address of a fixed node is never leased", 2, []leaseStep{
			{"asked for", 0, "offer", 1, 2, 1, false},
			{"taken", 0, "commit", 1, 2, 0, true},
			{"", 0, "commit", 1, 1, 0, false},
			{"", 0, "commit", 2, 3, 0, false},
			{"", 0, "commit", 3, 4, 0, false},
			{"three are all there are", 0, "offer", 4, 0, 0, true},
		}},
		{"a machine moves to another address", 0, []leaseStep{
			{"", 0, "commit", 1, 1, 0, false},
			{"", 1, "commit", 1, 4, 0, false},
			{"its old one is free at once", 1, "offer", 2, 1, 1, false},
			{"and it has the new one", 2, "offer", 1, 0, 4, false},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			reserve := func(a netip.Addr) bool { return tt.reserved != 0 && a == addr(tt.reserved) }
			s.Leases.Reserved = reserve
			for i, step := range tt.steps {
				run(t, s.Leases, i, step)
				unique(t, s.Leases)
			}
			want := fmt.Sprint(s.Leases.List())
			s = reopen(t, s, dir)
			if got := fmt.Sprint(s.Leases.List()); got != want {
				t.Errorf("after a restart:\ngot  %s\nwant %s", got, want)
			}
		})
	}
}

func run(t *testing.T, l *state.Leases, i int, s leaseStep) {
	t.Helper()
	now := epoch.Add(time.Duration(s.at) * time.Second)
	var err error
	var got netip.Addr
	wanted := netip.Addr{}
	if s.addr != 0 {
		wanted = addr(s.addr)
	}
	switch s.do {
	case "offer":
		got, err = l.Offer(plan(s.mac), wanted, now)
	case "commit":
		err = l.Commit(plan(s.mac), wanted, now)
		if held, ok := l.AddressOf(mac(s.mac)); err == nil && (!ok || held != wanted) {
			t.Errorf("step %d: AddressOf after Commit: got %s, %t; want %s", i, held, ok, wanted)
		}
	case "release":
		l.Release(mac(s.mac), wanted, now)
	}
	if errors.Is(err, state.ErrRefused) != s.refused || err != nil && !s.refused {
		t.Fatalf("step %d (%s): got error %v, want refused: %t", i, s.what, err, s.refused)
	}
	if s.want != 0 && got != addr(s.want) {
		t.Fatalf("step %d (%s): got %s, want %s", i, s.what, got, addr(s.want))
	}
}

// unique fails when an address has two machines or a machine two addresses.
func unique(t *testing.T, l *state.Leases) {
	t.Helper()
	byMAC, byAddr := map[pools.MAC]bool{}, map[netip.Addr]bool{}
	for _, lease := range l.List() {
		if byMAC[lease.MAC] || byAddr[lease.Address] {
			t.Fatalf("%s or %s is in two leases", lease.MAC, lease.Address)
		}
		byMAC[lease.MAC], byAddr[lease.Address] = true, true
	}
}

func TestExhaustedRangeIsNamed(t *testing.T) {
	s := open(t, t.TempDir())
	for i := 1; i <= 4; i++ {
		if err := s.Leases.Commit(plan(i), addr(i), epoch); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Leases.Offer(plan(5), netip.Addr{}, epoch)
	want := `pool "catchall": no address left in range 10.0.0.1-10.0.0.4 for 52:54:00:00:00:05`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestOfferWithoutRange(t *testing.T) {
	s := open(t, t.TempDir())
	p := plan(1)
	p.Range = pools.Range{}
	if _, err := s.Leases.Offer(p, addr(1), epoch); !errors.Is(err, state.ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}

func TestWhoHasWhat(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Leases.Commit(plan(1), addr(2), epoch); err != nil {
		t.Fatal(err)
	}
	if m, ok := s.Leases.MACAt(addr(2)); !ok || m != mac(1) {
		t.Errorf("MACAt: got %s, %t", m, ok)
	}
	if _, ok := s.Leases.MACAt(addr(1)); ok {
		t.Error("MACAt knows an address that nobody has")
	}
	s.Leases.Release(mac(1), addr(2), epoch.Add(time.Second))
	if a, ok := s.Leases.AddressOf(mac(1)); ok {
		t.Errorf("AddressOf after Release: got %s, want none", a)
	}
	if m, ok := s.Leases.MACAt(addr(2)); ok {
		t.Errorf("MACAt after Release: got %s, want none", m)
	}
}

// A lease of an earlier range must not keep a later range from reusing its
// own expired addresses.
func TestRangeChanges(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Leases.Commit(plan(1), addr(1), epoch); err != nil {
		t.Fatal(err)
	}
	p := func(n int) *pools.Plan {
		p := plan(n)
		p.Range = pools.Range{First: addr(8), Last: addr(8)}
		return p
	}
	if err := s.Leases.Commit(p(2), addr(8), epoch.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	later := epoch.Add(time.Hour)
	got, err := s.Leases.Offer(p(1), netip.Addr{}, later)
	if err != nil || got != addr(8) {
		t.Errorf("got %s, %v; want %s", got, err, addr(8))
	}
	if got, err := s.Leases.Offer(plan(1), netip.Addr{}, later); err != nil || got != addr(1) {
		t.Errorf("the old range: got %s, %v; want %s", got, err, addr(1))
	}
}

// Many machines at once, more than there are addresses.
func TestLeasesUnderLoad(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := map[netip.Addr]pools.MAC{}
	for n := range 300 {
		wg.Go(func() {
			p := plan(n + 1)
			p.Range.Last = addr(200)
			got, err := s.Leases.Offer(p, netip.Addr{}, epoch)
			if err == nil {
				err = s.Leases.Commit(p, got, epoch)
			}
			if err != nil {
				if !errors.Is(err, state.ErrRefused) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if other, ok := given[got]; ok {
				t.Errorf("%s was given to %s and %s", got, other, p.MAC)
			}
			given[got] = p.MAC
		})
	}
	wg.Wait()
	if len(given) != 200 {
		t.Errorf("got %d leases, want all 200 addresses in use", len(given))
	}
}

// FuzzLeases plays random stories on a small range and keeps to two rules: no
// address has two machines, and what is granted is in the range.
func FuzzLeases(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 1, 2, 2, 31, 1, 60, 3, 0})
	f.Add([]byte("offer commit release offer commit"))
	f.Fuzz(func(t *testing.T, story []byte) {
		s := open(t, t.TempDir())
		now := epoch
		holder := map[netip.Addr]pools.MAC{}
		until := map[netip.Addr]time.Time{}
		for i := 0; i+1 < len(story) && i < 80; i += 2 {
			now = now.Add(time.Duration(story[i]>>3) * time.Second)
			p, a := plan(int(story[i+1]&7)+1), addr(int(story[i+1]>>3)&7)
			var err error
			switch story[i] & 3 {
			case 0:
				s.Leases.Release(p.MAC, a, now)
				if holder[a] == p.MAC {
					delete(holder, a)
				}
				continue
			case 1:
				if a, err = s.Leases.Offer(p, a, now); err != nil {
					continue
				}
			}
			if err := s.Leases.Commit(p, a, now); err != nil {
				continue
			}
			if !p.Range.Contains(a) {
				t.Fatalf("%s is outside %s", a, p.Range)
			}
			if other, ok := holder[a]; ok && other != p.MAC && now.Before(until[a]) {
				t.Fatalf("%s is %s's until %s and was given to %s at %s", a, other, until[a], p.MAC, now)
			}
			for old, m := range holder {
				if m == p.MAC {
					delete(holder, old)
				}
			}
			holder[a], until[a] = p.MAC, now.Add(time.Minute)
			unique(t, s.Leases)
		}
	})
}

func BenchmarkCommit(b *testing.B) {
	s, err := state.Open(b.TempDir(), state.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer shut(b, s)
	var mu sync.Mutex
	n := 0
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			mu.Lock()
			n++
			p := plan(n % 60000)
			mu.Unlock()
			p.Range.Last = netip.MustParseAddr("10.0.250.250")
			a, err := s.Leases.Offer(p, netip.Addr{}, epoch)
			if err == nil {
				err = s.Leases.Commit(p, a, epoch)
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
}
