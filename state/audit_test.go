package state_test

import (
	"fmt"
	"slices"
	"testing"

	"drover/pools"
)

// TestAudit: the newest first, also after a restart, and no more than there is
// room for.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	add := func(from, to int) {
		t.Helper()
		var entries []pools.AuditEntry
		for i := from; i < to; i++ {
			entries = append(entries, pools.AuditEntry{Time: epoch, Actor: "token", Action: "power on", Node: fmt.Sprint("n", i), Result: "on"})
		}
		if err := s.Audit.Add(entries...); err != nil {
			t.Fatal(err)
		}
	}
	newest := func(limit int) string {
		t.Helper()
		all, err := s.Audit.List(limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			return "none"
		}
		return fmt.Sprintf("%d %s to %s", len(all), all[0].Node, all[len(all)-1].Node)
	}
	if got := newest(10); got != "none" {
		t.Errorf("at first: got %s", got)
	}
	add(0, 0)
	add(0, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	add(3, 5)
	if got := newest(10); got != "5 n4 to n0" {
		t.Errorf("after a restart: got %s", got)
	}
	if got := newest(2); got != "2 n4 to n3" {
		t.Errorf("two of them: got %s", got)
	}
	add(5, pools.MaxAudit+2)
	if got, want := newest(2*pools.MaxAudit), fmt.Sprintf("%d n%d to n2", pools.MaxAudit, pools.MaxAudit+1); got != want {
		t.Errorf("more than there is room for: got %s, want %s", got, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	add(pools.MaxAudit+2, pools.MaxAudit+3)
	if got, want := newest(2*pools.MaxAudit), fmt.Sprintf("%d n%d to n3", pools.MaxAudit, pools.MaxAudit+2); got != want {
		t.Errorf("after another restart: got %s, want %s", got, want)
	}
}

// TestAuditShares: nobody pushes out what others have done, and changes of nodes push out no
// other actions, also after a restart.
func TestAuditShares(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	add := func(actor, action, node string, n int) {
		t.Helper()
		entries := slices.Repeat([]pools.AuditEntry{{Time: epoch, Actor: actor, Action: action, Node: node, Result: "done"}}, n)
		if err := s.Audit.Add(entries...); err != nil {
			t.Fatal(err)
		}
	}
	count := func() map[string]int {
		t.Helper()
		all, err := s.Audit.List(2 * pools.MaxAudit)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]int{}
		for _, e := range all {
			of[e.Actor+": "+e.Action]++
		}
		return of
	}
	add("token ops from 10.0.0.1:1", "change node", "m1", 3)
	add("token red from 10.0.0.2:1", "make token x", "", 1)
	add("chassis c1", "add node", "m2", 2)
	for range 10 {
		for port := range 3 {
			add(fmt.Sprintf("token red from 10.0.0.2:%d", port+1), "add node", "r", pools.MaxAudit/10)
		}
		s.Close()
		s = open(t, dir)
	}
	got := count()
	for what, want := range map[string]int{"token ops from 10.0.0.1:1: change node": 3, "token red from 10.0.0.2:1: make token x": 1, "chassis c1: add node": 2} {
		if got[what] != want {
			t.Errorf("%s: %d entries, want %d", what, got[what], want)
		}
	}
	add("token ops from 10.0.0.1:1", "change node", "m1", 2*pools.MaxAudit) // more than there is room for in one step
	if got, want := count()["token ops from 10.0.0.1:1: change node"], pools.MaxAudit/2; got < want-4 || got > want+4 {
		t.Errorf("%d entries of the second client, want about half of all, %d", got, want)
	}
}
