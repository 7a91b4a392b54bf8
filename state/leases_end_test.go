package state_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

const hour = 3600

func TestLeasesEnd(t *testing.T) {
	tell(t, []leaseStory{
		{"a machine boots anew into another pool", 0, []leaseStep{
			{"", 0, "commit", 1, 1, 0, false},
			{"holds it", 59, "holds", 1, 0, 1, false},
			{"", 1, "leave", 1, 0, 0, false},
			{"holds nothing", 1, "holds", 1, 0, 0, true},
			{"leaving twice changes nothing", 2, "leave", 1, 0, 0, false},
			{"nor does who has nothing", 2, "leave", 2, 0, 0, false},
			{"others come", 3, "commit", 2, 2, 0, false},
			{"", 3, "commit", 3, 3, 0, false},
			{"", 3, "commit", 4, 4, 0, false},
			{"and get what it left", 4, "offer", 5, 0, 1, false},
		}},
		{"a lease is held a little longer than the machine is told", 0, []leaseStep{
			{"for 50 s", 0, "commit", 1, 1, 0, false},
			{"", 59, "holds", 1, 0, 1, false},
			{"", 60, "holds", 1, 0, 0, true},
			{"and is another's then", 60, "commit", 2, 1, 0, false},
			{"", 61, "holds", 1, 0, 0, true},
		}},
		{"a lease that is asked for again at once is not written again", 0, []leaseStep{
			{"", 0, "commit", 1, 1, 0, false},
			{"its 50 s fit", 10, "commit", 1, 1, 0, false},
			{"so it ends as before", 60, "holds", 1, 0, 0, true},
		}},
		{"but later it is", 0, []leaseStep{
			{"", 0, "commit", 1, 1, 0, false},
			{"", 11, "commit", 1, 1, 0, false},
			{"", 70, "holds", 1, 0, 1, false},
			{"", 71, "holds", 1, 0, 0, true},
		}},
		{"and when it was released in between", 0, []leaseStep{
			{"", 0, "commit", 1, 1, 0, false},
			{"", 1, "release", 1, 1, 0, false},
			{"", 2, "commit", 1, 1, 0, false},
			{"", 61, "holds", 1, 0, 1, false},
		}},
		{"a declined address is in quarantine for an hour", 0, []leaseStep{
			{"", 0, "offer", 1, 0, 1, false},
			{"finds somebody there", 1, "decline", 1, 1, 0, false},
			{"gets another one", 2, "offer", 1, 1, 2, false},
			{"", 3, "commit", 1, 2, 0, false},
			{"cannot insist", 4, "commit", 1, 1, 0, true},
			{"nor can others", 5, "commit", 2, 1, 0, true},
			{"", 5, "offer", 2, 1, 3, false},
			{"", 6, "commit", 2, 3, 0, false},
			{"", 7, "commit", 3, 4, 0, false},
			{"before the range is full", 8, "commit", 4, 1, 0, true},
			{"", 55, "commit", 1, 2, 0, false},
			{"", 56, "commit", 2, 3, 0, false},
			{"", 57, "commit", 3, 4, 0, false},
			{"others expire earlier", hour, "offer", 4, 1, 2, false},
			{"", hour, "offer", 5, 1, 3, false},
			{"", hour, "offer", 6, 1, 4, false},
			{"and it yields when nothing else is left", hour, "offer", 7, 0, 1, false},
			{"to one machine", hour, "offer", 8, 1, 0, true},
			{"", hour, "commit", 8, 1, 0, true},
			{"", hour, "commit", 7, 1, 0, false},
			{"", hour + 1, "holds", 7, 0, 1, false},
		}},
		{"a full range gives what is in quarantine, the oldest first", 0, []leaseStep{
			{"", 0, "offer", 1, 1, 1, false},
			{"", 0, "decline", 1, 1, 0, false},
			{"", 1, "offer", 1, 2, 2, false},
			{"", 1, "decline", 1, 2, 0, false},
			{"", 2, "commit", 2, 3, 0, false},
			{"", 2, "commit", 3, 4, 0, false},
			{"", 3, "offer", 4, 0, 1, false},
			{"in use after all", 4, "decline", 4, 1, 0, false},
			{"", 5, "offer", 4, 0, 2, false},
			{"", 6, "offer", 5, 0, 1, false},
			{"", 6, "offer", 6, 0, 0, true},
			{"", 7, "commit", 5, 1, 0, false},
			{"", 7, "commit", 4, 2, 0, false},
			{"", 8, "holds", 5, 0, 1, false},
		}},
		{"a machine declines what it holds", 0, []leaseStep{
			{"", 0, "commit", 1, 1, 0, false},
			{"", 1, "decline", 1, 1, 0, false},
			{"", 1, "holds", 1, 0, 0, true},
			{"", 2, "commit", 1, 2, 0, false},
			{"and the one after, too", 3, "decline", 1, 2, 0, false},
			{"", 4, "offer", 1, 0, 3, false},
		}},
		{"one declines only what is one's own", 0, []leaseStep{
			{"nobody's", 0, "decline", 1, 1, 0, true},
			{"", 0, "commit", 2, 2, 0, false},
			{"another's lease", 1, "decline", 1, 2, 0, true},
			{"", 1, "offer", 3, 3, 3, false},
			{"another's offer", 1, "decline", 1, 3, 0, true},
			{"", 1, "holds", 2, 0, 2, false},
			{"no address", 1, "decline", 2, 0, 0, true},
			{"its own, but that is over", 61, "decline", 2, 2, 0, true},
		}},
		{"the operator ends a lease", 0, []leaseStep{
			{"", 0, "commit", 1, 1, 0, false},
			{"not another machine's", 1, "end", 2, 1, 0, true},
			{"", 1, "holds", 1, 0, 1, false},
			{"", 1, "end", 1, 1, 0, false},
			{"which is over then", 2, "end", 1, 1, 0, true},
			{"", 2, "holds", 1, 0, 0, true},
			{"nobody's", 2, "end", 1, 2, 0, true},
			{"", 2, "offer", 2, 2, 2, false},
			{"on offer alone", 2, "end", 2, 2, 0, true},
		}},
		{"the operator ends a quarantine", 0, []leaseStep{
			{"", 0, "offer", 1, 0, 1, false},
			{"", 0, "decline", 1, 1, 0, false},
			{"not one that another machine has caused", 1, "end", 2, 1, 0, true},
			{"", 1, "end", 1, 1, 0, false},
			{"", 2, "commit", 2, 1, 0, false},
			{"", 3, "holds", 2, 0, 1, false},
		}},
		{"an address becomes a node's while a machine runs on it", 2, []leaseStep{
			{"a node's own address is nobody's lease", 0, "commit", 1, 2, 0, true},
		}},
	})
}

// A node that is known by its switch port has an address of its own; its lease
// says under which MAC it is there.
func TestNodesOwnAddress(t *testing.T) {
	s := open(t, t.TempDir())
	node := func(n int, name string) *resolve.Plan {
		p := reserving(9, plan)(n)
		p.Node, p.Pool, p.Matched, p.Address, p.Range = name, "compute", "circuitID", addr(9), pools.Range{}
		return p
	}
	if err := commit(s.Leases, node(1, "m1"), addr(9), epoch); err != nil {
		t.Fatal(err)
	}
	if err := commit(s.Leases, node(2, "m1"), addr(9), epoch); err != nil {
		t.Errorf("another MAC of the node: %v", err)
	}
	if l, _ := s.Leases.At(addr(9)); l.MAC != mac(2) {
		t.Errorf("the address is at %s, want %s", l.MAC, mac(2))
	}
	if l, ok := s.Leases.Of(mac(2)); !ok || l.Node != "m1" || l.Pool != "compute" {
		t.Errorf("Of: got %+v, %t", l, ok)
	}
	if _, ok := s.Leases.Of(mac(1)); ok {
		t.Error("the first MAC is still known")
	}
	if err := commit(s.Leases, node(3, "m2"), addr(9), epoch); !errors.Is(err, pools.ErrRefused) {
		t.Errorf("another node of that address: got %v, want ErrRefused", err)
	}
	if err := commit(s.Leases, reserving(9, plan)(4), addr(9), epoch.Add(time.Hour)); !errors.Is(err, pools.ErrRefused) {
		t.Errorf("unknown hardware: got %v, want ErrRefused", err)
	}
	if !s.Leases.Decline(plan(2), addr(9), "", epoch) {
		t.Error("the node cannot decline its address")
	}
	if err := commit(s.Leases, node(2, "m1"), addr(9), epoch); err != nil {
		t.Errorf("the node cannot have its own address after it declined it: %v", err)
	}
}

func TestFresh(t *testing.T) {
	s := open(t, t.TempDir())
	offer := func(n, at int, want bool) {
		t.Helper()
		_, fresh, err := s.Leases.Offer(plan(n), netip.Addr{}, epoch.Add(time.Duration(at)*time.Second))
		if err != nil || fresh != want {
			t.Errorf("machine %d at %d s: got fresh %t and %v, want %t", n, at, fresh, err, want)
		}
	}
	offer(1, 0, true)
	offer(1, 29, false)
	offer(1, 90, true) // that offer was over
	if err := commit(s.Leases, plan(1), addr(1), epoch); err != nil {
		t.Fatal(err)
	}
	offer(1, 5, false)
	offer(1, hour, false)
	for n := 2; n <= 4; n++ {
		offer(n, hour, true)
	}
	offer(5, hour+31, true) // an address that others had, not this one
}

func TestByPool(t *testing.T) {
	s := open(t, t.TempDir())
	for n, pool := range []string{"a", "b", "a", "a"} {
		p := plan(n)
		p.Pool = pool
		if err := commit(s.Leases, p, addr(n+1), epoch.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	s.Leases.Release(plan(2), addr(3), epoch)
	s.Leases.Decline(plan(3), addr(4), "", epoch)
	if got := s.Leases.ByPool(epoch); len(got) != 2 || got["a"] != 1 || got["b"] != 1 {
		t.Errorf("got %v, want one each", got)
	}
	if got := s.Leases.ByPool(epoch.Add(time.Minute)); len(got) != 1 || got["b"] != 1 {
		t.Errorf("a minute later: got %v, want b alone", got)
	}
}

func TestWaitMayBeCalledTwice(t *testing.T) {
	s := open(t, t.TempDir())
	wait, err := s.Leases.Commit(plan(1), addr(1), epoch)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
}

// Who asks in the name of ever new machines for ever new addresses fills
// neither RAM nor disk.
func TestLeasesAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Leases.SetLimit(2)
	for n := 1; n <= 2; n++ {
		if err := commit(s.Leases, plan(n), addr(n), epoch.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := commit(s.Leases, plan(3), addr(3), epoch.Add(time.Minute)); !errors.Is(err, pools.ErrRefused) {
		t.Errorf("a third lease: got %v, want ErrRefused", err)
	}
	if err := commit(s.Leases, plan(2), addr(4), epoch.Add(time.Minute)); err != nil {
		t.Errorf("another address instead of its own: %v", err)
	}
	if err := commit(s.Leases, plan(3), addr(3), epoch.Add(61*time.Second)); err != nil {
		t.Errorf("in place of the one that is over: %v", err)
	}
	want := []netip.Addr{addr(3), addr(4)}
	for range 2 {
		var got []netip.Addr
		for _, lease := range s.Leases.List() {
			got = append(got, lease.Address)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got leases of %s, want %s", got, want)
		}
		s = reopen(t, s, dir)
	}
}
