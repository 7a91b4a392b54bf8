package state_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func mac(n int) pools.MAC {
	return pools.MAC{0x52, 0x54, 0, byte(n >> 16), byte(n >> 8), byte(n)}
}

func addr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }

// plan returns the plan of machine n in a catch-all pool with the addresses
// 10.0.0.1 to 10.0.0.4. Its leases last 50 s, and are kept for a minute.
func plan(n int) *resolve.Plan {
	return &resolve.Plan{
		MAC: mac(n), Node: "node-" + mac(n).Hex(), Pool: "catchall", CatchAll: true, Image: "debian-12",
		Range: pools.Range{First: addr(1), Last: addr(4)},
		Lease: pools.Duration(50 * time.Second),
	}
}

// reserving wraps plan: its plans are those of a farm with a node that has the
// address addr(own).
func reserving(own int, plan func(int) *resolve.Plan) func(int) *resolve.Plan {
	farm := resolve.NewFarm(resolve.Checked{Config: pools.Config{Pools: []pools.Pool{
		{Name: "fixed", Nodes: []pools.Node{{Name: "own", IP: addr(own)}}},
		{Name: "catchall", CatchAll: true},
	}}})
	return func(n int) *resolve.Plan {
		want := plan(n)
		p := *farm.Resolve(resolve.Query{MAC: want.MAC})
		p.Node, p.Pool, p.CatchAll, p.Matched = want.Node, want.Pool, want.CatchAll, want.Matched
		p.Address, p.Range, p.Lease = want.Address, want.Range, want.Lease
		return &p
	}
}

// commit commits a lease and waits until it is durable.
func commit(l *state.Leases, p *resolve.Plan, a netip.Addr, now time.Time) error {
	wait, err := l.Commit(p, a, now)
	if err != nil {
		return err
	}
	return wait()
}

// leaseStep is one step of a story. Each step has its own second after the
// epoch.
type leaseStep struct {
	what    string
	at      int    // seconds
	do      string // offer, commit, release, leave, decline, end, holds
	mac     int
	addr    int  // preferred or committed; 0 is none
	want    int  // offered or held address
	refused bool // or there is no such lease
}

type leaseStory struct {
	name     string
	reserved int // the fixed address of a node
	steps    []leaseStep
}

func TestLeases(t *testing.T) {
	tell(t, []leaseStory{
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
			{"1 renews", 14, "commit", 1, 2, 0, false},
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
		{"an address outside the range can be kept, but is never offered", 0, []leaseStep{
			{"keeps it", 0, "commit", 1, 9, 0, false},
			{"another cannot have it", 1, "commit", 2, 9, 0, true},
			{"boots, and is offered one of the range", 2, "offer", 1, 9, 1, false},
			{"no address at all", 3, "commit", 3, 0, 0, true},
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
	})
}

// tell runs stories. The state at the end of a story must survive a restart.
func tell(t *testing.T, stories []leaseStory) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			plan := plan
			if story.reserved != 0 {
				plan = reserving(story.reserved, plan)
			}
			for i, step := range story.steps {
				run(t, s.Leases, plan, i, step)
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

func run(t *testing.T, l *state.Leases, plan func(int) *resolve.Plan, i int, s leaseStep) {
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
		got, _, err = l.Offer(plan(s.mac), wanted, now)
	case "commit":
		err = commit(l, plan(s.mac), wanted, now)
		if held, ok := l.Of(mac(s.mac)); err == nil && (!ok || held.Address != wanted) {
			t.Errorf("step %d: Of after Commit: got %s, %t; want %s", i, held.Address, ok, wanted)
		}
	case "release":
		l.Release(plan(s.mac), wanted, now)
	case "leave":
		l.Leave(mac(s.mac), netip.Addr{}, now)
	case "decline":
		err = refusedUnless(l.Decline(plan(s.mac), wanted, "somebody answers", now))
	case "end":
		err = refusedUnless(l.End(wanted, mac(s.mac), now))
	case "holds":
		var ok bool
		got, ok = l.Holds(mac(s.mac), now)
		err = refusedUnless(ok)
	default:
		t.Fatalf("step %d: nobody can %q", i, s.do)
	}
	if errors.Is(err, pools.ErrRefused) != s.refused || err != nil && !s.refused {
		t.Fatalf("step %d (%s): got error %v, want refused: %t", i, s.what, err, s.refused)
	}
	if s.want != 0 && got != addr(s.want) {
		t.Fatalf("step %d (%s): got %s, want %s", i, s.what, got, addr(s.want))
	}
}

func refusedUnless(ok bool) error {
	if ok {
		return nil
	}
	return pools.ErrRefused
}

// unique fails when an address has two machines, or a machine two addresses.
func unique(t *testing.T, l *state.Leases) {
	t.Helper()
	byMAC, byAddr := map[pools.MAC]bool{}, map[netip.Addr]bool{}
	for _, lease := range l.List() {
		declined := lease.Declined != "" // the machine that declined it may meanwhile have another
		if byMAC[lease.MAC] && !declined || byAddr[lease.Address] {
			t.Fatalf("%s or %s is in two leases", lease.MAC, lease.Address)
		}
		byAddr[lease.Address] = true
		if !declined {
			byMAC[lease.MAC] = true
		}
	}
}

func TestExhaustedRangeIsNamed(t *testing.T) {
	s := open(t, t.TempDir())
	for i := 1; i <= 4; i++ {
		if err := commit(s.Leases, plan(i), addr(i), epoch); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := s.Leases.Offer(plan(5), netip.Addr{}, epoch)
	want := `pool "catchall": no address left in range 10.0.0.1-10.0.0.4 for 52:54:00:00:00:05`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestOfferWithoutRange(t *testing.T) {
	s := open(t, t.TempDir())
	p := plan(1)
	p.Range = pools.Range{}
	if _, _, err := s.Leases.Offer(p, addr(1), epoch); !errors.Is(err, pools.ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}

func TestWhoHasWhat(t *testing.T) {
	s := open(t, t.TempDir())
	if err := commit(s.Leases, plan(1), addr(2), epoch); err != nil {
		t.Fatal(err)
	}
	if l, ok := s.Leases.At(addr(2)); !ok || l.MAC != mac(1) {
		t.Errorf("At: got %s, %t", l.MAC, ok)
	}
	if _, ok := s.Leases.At(addr(1)); ok {
		t.Error("At knows an address that nobody has")
	}
	s.Leases.Release(plan(1), addr(2), epoch.Add(time.Second))
	if l, ok := s.Leases.Of(mac(1)); ok {
		t.Errorf("Of after Release: got %s, want none", l.Address)
	}
	if l, ok := s.Leases.At(addr(2)); ok {
		t.Errorf("At after Release: got %s, want none", l.MAC)
	}
}

// TestRangeChanges: a lease of an earlier range does not keep a later range
// from reusing its own expired addresses.
func TestRangeChanges(t *testing.T) {
	s := open(t, t.TempDir())
	if err := commit(s.Leases, plan(1), addr(1), epoch); err != nil {
		t.Fatal(err)
	}
	p := func(n int) *resolve.Plan {
		p := plan(n)
		p.Range = pools.Range{First: addr(8), Last: addr(8)}
		return p
	}
	if err := commit(s.Leases, p(2), addr(8), epoch.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	later := epoch.Add(time.Hour)
	got, _, err := s.Leases.Offer(p(1), netip.Addr{}, later)
	if err != nil || got != addr(8) {
		t.Errorf("got %s, %v; want %s", got, err, addr(8))
	}
	if got, _, err := s.Leases.Offer(plan(1), netip.Addr{}, later); err != nil || got != addr(1) {
		t.Errorf("the old range: got %s, %v; want %s", got, err, addr(1))
	}
}

// TestLeasesUnderLoad: many machines request addresses at once, more than there
// are addresses.
func TestLeasesUnderLoad(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := map[netip.Addr]pools.MAC{}
	for n := range 300 {
		wg.Go(func() {
			p := plan(n + 1)
			p.Range.Last = addr(200)
			got, _, err := s.Leases.Offer(p, netip.Addr{}, epoch)
			if err == nil {
				err = commit(s.Leases, p, got, epoch)
			}
			if err != nil {
				if !errors.Is(err, pools.ErrRefused) {
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

// TestStoredLease: all fields of a lease are the same after a restart.
func TestStoredLease(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	p := plan(1)
	p.Node, p.Pool = "größe \"<&>\" \\", strings.Repeat("a\x01b", 1000)
	now := epoch.Add(1500 * time.Microsecond)
	v6 := netip.MustParseAddr("2001:db8::1")
	for n, a := range []netip.Addr{addr(1), addr(2), v6} {
		p := *p
		p.MAC = mac(n + 1)
		if err := commit(s.Leases, &p, a, now); err != nil {
			t.Fatal(err)
		}
	}
	s.Leases.Release(plan(2), addr(2), now)
	s.Leases.Decline(plan(1), addr(1), "in use", now)
	want := s.Leases.List()
	if got := reopen(t, s, dir).Leases.List(); len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestNamed: Named returns the latest machine of a node, by the node's name.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	port := func(n int) *resolve.Plan { // a node that is identified by its switch port
		p := plan(n)
		p.Node, p.CatchAll = "m1", false
		return p
	}
	for n, p := range []*resolve.Plan{plan(1), port(2), port(3)} {
		if err := commit(s.Leases, p, addr(n+1), epoch.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for name, want := range map[string]int{"m1": 3, plan(1).Node: 1, plan(2).Node: 0, "m2": 0, "": 0} {
			got, ok := s.Leases.Named(name)
			if ok != (want != 0) || ok && (got.MAC != mac(want) || got.Address != addr(want)) {
				t.Errorf("Named(%q): got %+v, %t; want machine %d", name, got, ok, want)
			}
		}
		s = reopen(t, s, dir)
	}
	s.Leases.Release(plan(3), addr(3), epoch.Add(5*time.Second))
	if got, ok := s.Leases.Named("m1"); !ok || got.MAC != mac(3) {
		t.Errorf("after its release: got %+v, %t; want machine 3", got, ok)
	}
	if err := commit(s.Leases, plan(3), addr(3), epoch.Add(hour*time.Second)); err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Leases.Named("m1"); ok && got.MAC == mac(3) {
		t.Errorf("machine 3 has another name now: got %+v", got)
	}
}

// TestServersGetNoLease: an address of a range that the config names as a server's is not
// leased, unless a machine has it (W12).
func TestServersGetNoLease(t *testing.T) {
	dns, ntp := addr(1), addr(2)
	farm := resolve.NewFarm(resolve.Checked{Config: pools.Config{
		Subnets: []pools.Subnet{{CIDR: netip.MustParsePrefix("10.0.0.0/24"), DNS: []netip.Addr{dns}}},
		Tags:    map[string]pools.Tag{"other": {DHCPOptions: map[string]pools.Strings{"ntp-server": {ntp.String()}}}},
		Pools:   []pools.Pool{{Name: "catchall", CatchAll: true, Range: pools.Range{First: addr(1), Last: addr(4)}}},
	}})
	named := func(n int) *resolve.Plan {
		p := *farm.Resolve(resolve.Query{MAC: mac(n)})
		p.Lease = pools.Duration(50 * time.Second)
		return &p
	}
	l := open(t, t.TempDir()).Leases
	if err := commit(l, plan(9), ntp, epoch); err != nil { // before the config named it
		t.Fatal(err)
	}
	for n, want := range map[int]netip.Addr{9: ntp, 1: dns, 2: ntp} {
		got, _, err := l.Offer(named(n), want, epoch)
		if (got == want) != (n == 9) || err != nil {
			t.Errorf("machine %d asks for %s: got %s, %v", n, want, got, err)
		}
	}
	if got, _, err := l.Offer(named(3), dns, epoch); err == nil {
		t.Errorf("the range has servers only: got an offer of %s", got)
	}
}
