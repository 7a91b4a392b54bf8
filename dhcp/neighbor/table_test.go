package neighbor

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover/dhcp"
	"drover/pools"
)

// quiet is a wire on which the test answers.
type quiet struct{}

func (quiet) ask(Host) error { return nil }
func (quiet) source(a netip.Addr) netip.Addr {
	if netip.MustParsePrefix("10.28.0.0/16").Contains(a) {
		return a
	}
	return netip.Addr{}
}

func newTable() *Table {
	return &Table{Conn: quiet{}, Log: slog.New(slog.DiscardHandler), Now: time.Now}
}

// TestCrowd: questions about hosts that nobody has, as many as strangers can cause, keep no host that
// answers from its answer, and each ends once.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		var silent, answered atomic.Int32
		for i := range 3 * maxQuestions {
			h := Host{netip.MustParseAddr("10.28.0.9"), pools.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}}
			if !table.Ask(h, time.Second, func(ok bool) {
				if !ok {
					silent.Add(1)
				}
			}) {
				t.Fatalf("question %d is refused", i)
			}
		}
		router := Host{netip.MustParseAddr("fd00::fe"), theirs}
		if !table.Ask(router, time.Second, func(ok bool) {
			if ok {
				answered.Add(1)
			}
		}) {
			t.Fatal("a question is refused in a crowd")
		}
		table.Seen(router)
		time.Sleep(time.Minute)
		if answered.Load() != 1 || silent.Load() != 3*maxQuestions {
			t.Errorf("got %d answers and %d without, want 1 and %d", answered.Load(), silent.Load(), 3*maxQuestions)
		}
		table.Stop()
		if table.Ask(router, time.Second, func(bool) {}) {
			t.Error("a question after the end is not refused")
		}
	})
}

// TestSettle: what is decided from the answers of one MAC.
func TestSettle(t *testing.T) {
	source, leased, leased6 := netip.MustParseAddr("10.28.0.9"), netip.MustParseAddr("10.28.72.10"), netip.MustParseAddr("fd00::100")
	router, away := netip.MustParseAddr("10.28.0.1"), netip.MustParseAddr("10.29.0.1")
	for _, tt := range []struct {
		name    string
		v       dhcp.Verdict
		answers []netip.Addr
		want    bool
	}{
		{"a source that answers", dhcp.Verdict{Confirm: source}, []netip.Addr{source}, true},
		{"one that does not", dhcp.Verdict{Confirm: source}, []netip.Addr{leased}, false},
		{"a lease of nobody", dhcp.Verdict{Unless: []netip.Addr{leased, leased6}}, nil, true},
		{"a machine", dhcp.Verdict{Unless: []netip.Addr{leased, leased6}}, []netip.Addr{leased}, false},
		{"a machine of IPv6", dhcp.Verdict{Unless: []netip.Addr{leased, leased6}}, []netip.Addr{leased6}, false},
		{"a router with a lease", dhcp.Verdict{Unless: []netip.Addr{leased, leased6}}, []netip.Addr{leased, router}, true},
		{"a router that is not on the wire is not asked", dhcp.Verdict{Unless: []netip.Addr{leased}}, []netip.Addr{leased, away}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := newTable()
				tt.v.By = theirs
				var got []bool
				if !table.Settle(tt.v, []netip.Addr{router, away}, func(ok bool) { got = append(got, ok) }) {
					t.Fatal("refused")
				}
				for _, a := range tt.answers {
					table.Seen(Host{a, ours}) // another host changes nothing
					table.Seen(Host{a, theirs})
				}
				time.Sleep(settlePatience + time.Second)
				synctest.Wait()
				table.Stop()
				if len(got) != 1 || got[0] != tt.want {
					t.Errorf("got %v, want %t", got, tt.want)
				}
			})
		})
	}
}
