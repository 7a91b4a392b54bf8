package web_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
)

// crowd returns n boots of machines that no node declares, the newest first: the first
// ones are the newest, and only the last reached its kernel.
func crowd(n int) (all []boots.Record) {
	for i := range n {
		mac := pools.MAC{0x52, 0x54, 0, 1, byte(i >> 8), byte(i)}
		steps := 2
		if i == n-1 {
			steps = 5
		}
		b := boot(0, pools.CatchAllName(mac), "lobby", steps, time.Minute, "")
		b.MAC, b.Unknown, b.ID = mac, true, fmt.Sprintf("c%06d", 999_999-i)
		all = append(all, b)
	}
	return all
}

// Finding H5: 8000 invented machines made a page of 9.4 MB.
func TestPageOfACrowd(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		s.Boots = bootList(append(crowd(5000), boot(1, "m1", "tenant-a", 5, time.Hour, "")))
	})
	page := s.browse(t, "/nodes")
	if got := rows(page); len(got) != 100 || len(page) > 100_000 || got[0] != "m1" || got[1] != "m2" {
		t.Errorf("got %d machines in %d bytes, the first %q: want the two declared ones first, and 98 of the others", len(got), len(page), got[:2])
	}
	if page := s.browse(t, "/"); !strings.Contains(page, ">m1</a>") || len(page) > 50_000 {
		t.Errorf("the overview has %d bytes, or not the declared machine", len(page))
	}
}

// Finding H5: the list of boots showed invented machines only.
func TestBootsOfACrowd(t *testing.T) {
	var all []boots.Record
	s := newHarness(t, func(s *harness) {
		all = append(crowd(5000), boot(1, "m1", "tenant-a", 5, time.Hour, ""), boot(2, "m2", "tenant-a", 5, time.Hour, ""))
		all[5000].ID, all[5001].ID = "b2", "b1"
		s.Boots = bootList(all)
	})
	for _, tt := range []struct {
		query         string
		boots, nobody int
		declared      bool // both are in it
	}{
		{"", 1000, 998, true},
		{"?limit=4", 4, 2, true},
		{"?limit=1", 1, 1, false},
		{"?node=m1", 1, 0, false},
	} {
		resp := s.do(request{path: "/api/v1/boots" + tt.query})
		var got []boots.Record
		if err := json.Unmarshal(resp.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		unknown, declared := 0, 0
		for _, b := range got {
			if b.Unknown {
				unknown++
			} else {
				declared++
			}
		}
		if len(got) != tt.boots || unknown != tt.nobody || (declared == 2) != tt.declared {
			t.Errorf("%q: got %d boots, %d of machines that no node declares, %d of others", tt.query, len(got), unknown, declared)
		}
		if !slices.IsSortedFunc(got, boots.NewestFirst) {
			t.Errorf("%q: not the newest first", tt.query)
		}
	}
}
