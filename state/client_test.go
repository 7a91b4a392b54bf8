package state_test

import (
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

// planOf returns the plan of machine n with a client identifier.
func planOf(n int, id string) *resolve.Plan {
	farm := resolve.NewFarm(resolve.Checked{Config: pools.Config{Pools: []pools.Pool{{Name: "catchall", CatchAll: true}}}})
	want := plan(n)
	p := *farm.Resolve(resolve.Query{MAC: want.MAC, ClientID: id})
	p.Node, p.Pool, p.Range, p.Lease = want.Node, want.Pool, want.Range, want.Lease
	return &p
}

// A lease ends by a message of its own client, also after a restart. A lease or a message without a
// client identifier fits all.
func TestReleaseOfAnotherClient(t *testing.T) {
	for _, tt := range []struct {
		name, leased, then, by string // then: a second program of the same boot
		ends                   bool
	}{
		{"the client itself", "a", "", "a", true},
		{"another client", "a", "", "b", false},
		{"none in the RELEASE", "a", "", "", true},
		{"none in the lease", "", "", "b", true},
		{"the second program", "a", "b", "b", true},
		{"the first, behind the second", "a", "b", "a", false},
	} {
		for _, restarts := range []bool{false, true} {
			for _, end := range []struct {
				name string
				do   func(*state.Leases, *resolve.Plan) bool
			}{
				{"RELEASE", func(l *state.Leases, p *resolve.Plan) bool { return l.Release(p, addr(1), epoch.Add(2*time.Second)) }},
				{"DECLINE", func(l *state.Leases, p *resolve.Plan) bool {
					return l.Decline(p, addr(1), "", epoch.Add(2*time.Second))
				}},
			} {
				dir := t.TempDir()
				s := open(t, dir)
				if err := commit(s.Leases, planOf(1, tt.leased), addr(1), epoch); err != nil {
					t.Fatal(err)
				}
				if tt.then != "" {
					if err := commit(s.Leases, planOf(1, tt.then), addr(1), epoch.Add(time.Second)); err != nil {
						t.Fatal(err)
					}
				}
				if restarts {
					s = reopen(t, s, dir)
				}
				done := end.do(s.Leases, planOf(1, tt.by))
				if _, held := s.Leases.Holds(mac(1), epoch.Add(3*time.Second)); done != tt.ends || held == tt.ends {
					t.Errorf("%s of %s, restarted %t: got %t, then held %t", end.name, tt.name, restarts, done, held)
				}
			}
		}
	}
}
