package chassis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/web/api"
	"drover/web/page/chassis"
	"drover/web/page/snapshot"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// in returns a machine in a slot.
func in(at, slot, name string) snapshot.Machine {
	n := &pools.NodeInfo{PoolNode: pools.PoolNode{Node: pools.Node{Name: name, ChassisSlot: pools.ChassisSlot{Chassis: at, Slot: slot}}}}
	return snapshot.Machine{Machine: api.Machine{NodeInfo: n}, State: "ready"}
}

func draw(c pools.ChassisStatus, machines ...snapshot.Machine) chassis.Chassis {
	return chassis.Draw([]pools.ChassisStatus{c}, machines, epoch, func(*pools.ChassisStatus) string { return "" })[0]
}

// TestSlots: each machine is in its slot, and what is in no slot of this chassis is not drawn.
func TestSlots(t *testing.T) {
	c := draw(
		pools.ChassisStatus{Name: "hw"},
		in("hw", "c1n1", "first"), in("hw", "C02N3", "a/b"), in("hw", "c45n8", "last"),
		in("other", "c1n2", "another's"), in("", "", "none"), in("hw", "", "no slot"),
		in("hw", "c46n1", "x"), in("hw", "c1n9", "x"), in("hw", "c0n1", "x"), in("hw", "c-1n1", "x"), in("hw", "c1n1n1", "x"), in("hw", "c999999999999n1", "x"),
	)
	if len(c.Cartridges) != pools.Cartridges {
		t.Fatalf("got %d cartridges", len(c.Cartridges))
	}
	got := map[string]string{}
	for i, cart := range c.Cartridges {
		if cart.Number != i+1 {
			t.Errorf("cartridge %d has the number %d", i+1, cart.Number)
		}
		for _, s := range cart.Nodes {
			if s.Name != "" {
				got[s.Slot] = s.Name + " " + s.URL + " " + s.State
			}
		}
	}
	want := map[string]string{"c1n1": "first /nodes/first ready", "c2n3": "a/b /nodes/a%2Fb ready", "c45n8": "last /nodes/last ready"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for number, slots := range map[int]int{1: 1, 2: 3, 3: 1, 45: 8} {
		if n := len(c.Cartridges[number-1].Nodes); n != slots {
			t.Errorf("cartridge %d has %d slots, want %d", number, n, slots)
		}
	}
}

// TestFacts: a chassis says when it was read, and what was found.
func TestFacts(t *testing.T) {
	for _, tt := range []struct {
		status pools.ChassisStatus
		want   string
	}{
		{pools.ChassisStatus{}, "not read yet, 0 nodes"},
		{pools.ChassisStatus{Asking: true, Last: epoch}, "is being read, 0 nodes"},
		{pools.ChassisStatus{Last: epoch.Add(-5 * time.Minute), Nodes: 45}, "read 5 min ago, 45 nodes"},
		{pools.ChassisStatus{Last: epoch.Add(time.Hour)}, "read 0 s ago, 0 nodes"},
		{pools.ChassisStatus{Last: epoch, Counts: map[string]int{"same": 40, "new": 2, "missing": 1, "changed": 0}}, "read 0 s ago, 0 nodes, 1 missing, 2 new"},
		{pools.ChassisStatus{Last: epoch, Stopped: true}, "read 0 s ago, 0 nodes, no automatic reading until somebody asks for one"},
	} {
		if got := strings.Join(draw(tt.status).Facts, ", "); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestHostileTexts: what a management processor says is a bounded number of short lines.
func TestHostileTexts(t *testing.T) {
	long := "x\r\ny\x1b]0;\u202e" + strings.Repeat("z", 10_000)
	c := draw(pools.ChassisStatus{Name: "hw", Address: long, Error: long, Last: epoch, Problems: slices.Repeat([]string{long}, 1000), Counts: map[string]int{long: 1}})
	if n := len(c.Problems); n != 20 {
		t.Errorf("got %d problems", n)
	}
	for _, s := range slices.Concat(c.Problems, c.Facts, []string{c.Error, c.Address}) {
		if len(s) > 310 || strings.ContainsAny(s, "\r\n\x1b\u202e") {
			t.Errorf("%d bytes: %.60q", len(s), s)
		}
	}
}

// TestRead: the form that reads a chassis is that of the chassis itself.
func TestRead(t *testing.T) {
	all := []pools.ChassisStatus{{Name: "a"}, {Name: "b"}}
	for _, c := range chassis.Draw(all, nil, epoch, func(c *pools.ChassisStatus) string { return "/change?do=read&pick=" + c.Name }) {
		if c.Read != "/change?do=read&pick="+c.Name {
			t.Errorf("%s: %q", c.Name, c.Read)
		}
	}
	if drawn := chassis.Draw(nil, []snapshot.Machine{in("hw", "c1n1", "x")}, epoch, nil); drawn != nil {
		t.Errorf("no chassis: %+v", drawn)
	}
}
