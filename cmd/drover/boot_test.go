package main

import (
	"strings"
	"testing"
	"time"

	"drover/pools/boots"
)

// Boots are sorted as people read names; the newest of equal ones come first.
func TestSortBoots(t *testing.T) {
	now := time.Now()
	newest := func() []boots.Record { // as the server lists them
		return []boots.Record{
			{ID: "5", Node: "n10", Pool: "web", Started: now},
			{ID: "4", Node: "n2", Pool: "web", Started: now.Add(-time.Minute)},
			{ID: "3", Node: "n10", Pool: "db", Started: now.Add(-2 * time.Minute)},
		}
	}
	for _, tt := range []struct {
		by       string
		reversed bool
		want     string
	}{
		{"started", true, "5 4 3"}, {"started", false, "3 4 5"},
		{"node", false, "4 5 3"}, {"node", true, "5 3 4"}, {"pool", false, "3 5 4"},
	} {
		all := newest()
		sortBoots(all, tt.by, tt.reversed)
		var ids []string
		for _, b := range all {
			ids = append(ids, b.ID)
		}
		if got := strings.Join(ids, " "); got != tt.want {
			t.Errorf("by %s, reversed %v: got %s, want %s", tt.by, tt.reversed, got, tt.want)
		}
	}
}
