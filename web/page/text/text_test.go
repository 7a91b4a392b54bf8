package text_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"drover/pools"
	"drover/web/page/text"
)

// TestDurations: a duration has one unit, and a clock that was set back makes no negative one.
func TestDurations(t *testing.T) {
	for _, tt := range []struct {
		d            time.Duration
		seconds, ago string
	}{
		{-time.Hour, "0.0 s", "0 s"},
		{0, "0.0 s", "0 s"},
		{1540 * time.Millisecond, "1.5 s", "1 s"},
		{9940 * time.Millisecond, "9.9 s", "9 s"},
		{10 * time.Second, "10 s", "10 s"},
		{24400 * time.Millisecond, "24 s", "24 s"},
		{2*time.Minute - time.Second, "119 s", "119 s"},
		{2 * time.Minute, "120 s", "2 min"},
		{2*time.Hour - time.Second, "7199 s", "119 min"},
		{2 * time.Hour, "7200 s", "2 h"},
		{48*time.Hour - time.Second, "172799 s", "47 h"},
		{48 * time.Hour, "172800 s", "2 days"},
		{100 * 24 * time.Hour, "8640000 s", "100 days"},
	} {
		if got := text.Seconds(tt.d); got != tt.seconds {
			t.Errorf("Seconds of %s: got %q, want %q", tt.d, got, tt.seconds)
		}
		if got := text.Ago(tt.d); got != tt.ago {
			t.Errorf("Ago of %s: got %q, want %q", tt.d, got, tt.ago)
		}
	}
}

// TestClock: times are those of UTC, and say so.
func TestClock(t *testing.T) {
	at := time.Date(2026, 11, 20, 1, 0, 5, 999, time.FixedZone("", 2*60*60))
	if got := text.Clock(at); got != "2026-11-19 23:00:05 UTC" {
		t.Errorf("got %q", got)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0.0 MB", 51_000: "0.1 MB", 9_940_000: "9.9 MB", 10_000_000: "10 MB", 260_999_999: "260 MB", 4_000_000_000: "4000 MB"} {
		if got := text.Size(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

// TestDifferences: each field that is not the same is one line, in the order of the names.
func TestDifferences(t *testing.T) {
	base := pools.PoolNode{Pool: "compute", Node: pools.Node{Name: "n3", MACs: []pools.MAC{{2, 0, 0, 0, 0, 3}}, IP: netip.MustParseAddr("10.28.0.13"), Tags: []string{"gpu", "debug"}}}
	for _, tt := range []struct {
		name string
		edit func(*pools.PoolNode)
		want []string
	}{
		{"nothing", func(*pools.PoolNode) {}, nil},
		{"the pool", func(n *pools.PoolNode) { n.Pool = "storage" }, []string{"pool: compute → storage"}},
		{"one field more", func(n *pools.PoolNode) { n.Ignore = true }, []string{"ignore: true"}},
		{"one field less", func(n *pools.PoolNode) { n.IP = netip.Addr{} }, []string{"ip: 10.28.0.13 → none"}},
		{"a part of a list", func(n *pools.PoolNode) { n.Tags = n.Tags[:1] }, []string{"tags: gpu debug → gpu"}},
		{"all of a list", func(n *pools.PoolNode) { n.Tags = nil }, []string{"tags: gpu debug → none"}},
		{"an empty list is none", func(n *pools.PoolNode) { n.Tags = []string{} }, []string{"tags: gpu debug → none"}},
		{"another order of MACs", func(n *pools.PoolNode) { n.MACs = append(n.MACs, pools.MAC{2}) }, []string{"macs: 02:00:00:00:00:03 → 02:00:00:00:00:03 02:00:00:00:00:00"}},
		{"options", func(n *pools.PoolNode) { n.DHCPOptions = map[string]pools.Strings{"mtu": {"9000"}} }, []string{`dhcpOptions: {"mtu":["9000"]}`}},
		{"several", func(n *pools.PoolNode) { n.Name, n.Pool, n.IP = "n4", "storage", netip.Addr{} }, []string{"ip: 10.28.0.13 → none", "name: n3 → n4", "pool: compute → storage"}},
	} {
		changed := base
		changed.MACs, changed.Tags = slices.Clone(base.MACs), slices.Clone(base.Tags)
		tt.edit(&changed)
		if got := text.Differences(&base, &changed); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
