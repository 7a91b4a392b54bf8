package state_test

import (
	"fmt"
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
