package pools_test

import (
	"fmt"
	"testing"
	"time"

	"drover/pools"
)

// took makes a boot that reached steps, each that long after the one before.
func took(node string, began time.Time, steps ...any) pools.BootRecord {
	b := pools.BootRecord{ID: began.Format(time.RFC3339Nano) + node, MAC: pools.MAC{2, 0, 0, 0, 0, node[0]}, Node: node, Pool: "web", Cluster: "tenant-a", Started: began}
	at := began
	for i := 0; i < len(steps); i += 2 {
		at = at.Add(steps[i+1].(time.Duration))
		b.Steps = append(b.Steps, pools.BootStep{Step: steps[i].(pools.Step), Time: at})
	}
	return b
}

func TestMarkStuck(t *testing.T) {
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	// Five boots in which the image took 40 s, and the network 2 s; the newest
	// come first.
	var before []pools.BootRecord
	for i := range 5 {
		before = append(before, took(fmt.Sprintf("%d", i), now.Add(-time.Hour), pools.StepDiscover, 0*time.Second,
			pools.StepInit, 5*time.Second, pools.StepNetwork, 2*time.Second, pools.StepImage, 40*time.Second, pools.StepReady, time.Minute))
	}
	ago := func(d time.Duration, steps ...any) pools.BootRecord {
		b := took("n", now, steps...)
		shift := now.Add(-d).Sub(b.Steps[len(b.Steps)-1].Time)
		b.Started = b.Started.Add(shift)
		for i := range b.Steps {
			b.Steps[i].Time = b.Steps[i].Time.Add(shift)
		}
		return b
	}
	other := func(b pools.BootRecord) pools.BootRecord { b.Pool = "other"; return b }
	alone := func(b pools.BootRecord) pools.BootRecord { b.Cluster = ""; return b }
	failed := func(b pools.BootRecord) pools.BootRecord {
		b.Steps = append(b.Steps, pools.BootStep{Step: pools.StepImage, Time: now, Error: "no route"})
		return b
	}
	tests := []struct {
		name  string
		boot  pools.BootRecord
		after pools.Step // empty: not stuck
		usual time.Duration
		limit time.Duration
	}{
		{"as fast as others", ago(30*time.Second, pools.StepNetwork, 0*time.Second), "", 0, 0},
		{"three times as slow", ago(2*time.Minute, pools.StepNetwork, 0*time.Second), "", 0, 0},
		{"and more", ago(2*time.Minute+1, pools.StepNetwork, 0*time.Second), pools.StepNetwork, 40 * time.Second, 2 * time.Minute},
		{"it failed meanwhile", failed(ago(2*time.Minute+1, pools.StepNetwork, 0*time.Second)), pools.StepNetwork, 40 * time.Second, 2 * time.Minute},
		{"a fast step", ago(time.Minute, pools.StepInit, 0*time.Second), "", 0, 0},
		{"and a minute of it", ago(time.Minute+1, pools.StepInit, 0*time.Second), pools.StepInit, 2 * time.Second, time.Minute},
		{"a step that none has come from", ago(3*time.Minute, pools.StepScript, 0*time.Second), "", 0, 0},
		{"and longer", ago(3*time.Minute+1, pools.StepScript, 0*time.Second), pools.StepScript, 0, 3 * time.Minute},
		{"another pool", other(ago(2*time.Minute+1, pools.StepNetwork, 0*time.Second)), "", 0, 0},
		{"Ready", ago(time.Hour, pools.StepReady, 0*time.Second), "", 0, 0},
		{"no cluster, online", alone(ago(time.Hour, pools.StepOnline, 0*time.Second)), "", 0, 0},
		{"no cluster, before", alone(ago(time.Hour, pools.StepSwitch, 0*time.Second)), pools.StepSwitch, 0, 3 * time.Minute},
		{"a clock that went back", ago(-time.Hour, pools.StepInit, 0*time.Second), "", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := pools.MarkStuck(append([]pools.BootRecord{tt.boot}, before...), now)
			for _, b := range got[1:] {
				if b.Stuck != nil {
					t.Errorf("%s is stuck: %+v", b.Node, *b.Stuck)
				}
			}
			switch s := got[0].Stuck; {
			case (s != nil) != (tt.after != ""):
				t.Errorf("got %+v, want stuck after %q", s, tt.after)
			case s != nil && (s.After != tt.after || s.Usual.D() != tt.usual || s.Limit.D() != tt.limit):
				t.Errorf("got %+v, want after %s, usually %s, limit %s", *s, tt.after, tt.usual, tt.limit)
			}
		})
	}
	t.Run("four boots are too few to compare with", func(t *testing.T) {
		boots := append([]pools.BootRecord{ago(2*time.Minute+1, pools.StepNetwork, 0*time.Second)}, before[:4]...)
		if s := pools.MarkStuck(boots, now)[0].Stuck; s != nil {
			t.Errorf("stuck: %+v", *s)
		}
	})
}

// Only the newest boot of a node counts, whichever card it came from, and the
// records themselves stay as they are.
func TestOnlyTheNewestIsStuck(t *testing.T) {
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	newest, older := took("n", now.Add(-time.Minute), pools.StepReady, time.Second), took("n", now.Add(-time.Hour), pools.StepInit, time.Second)
	older.MAC = pools.MAC{2, 0, 0, 0, 0, 99}
	boots := []pools.BootRecord{newest, older}
	for _, b := range pools.MarkStuck(boots, now) {
		if b.Stuck != nil {
			t.Errorf("%s is stuck: %+v", b.ID, *b.Stuck)
		}
	}
	boots = []pools.BootRecord{older}
	if got := pools.MarkStuck(boots, now); got[0].Stuck == nil || boots[0].Stuck != nil {
		t.Errorf("marked %v, the record itself %v", got[0].Stuck, boots[0].Stuck)
	}
}

func TestTook(t *testing.T) {
	b := took("n", time.Unix(0, 0), pools.StepDiscover, 0*time.Second, pools.StepScript, 3*time.Second, pools.StepImage, 2*time.Second)
	b.Steps = append(b.Steps[:2:2], append([]pools.BootStep{{Step: pools.StepImage, Time: time.Unix(4, 0), Error: "no route"}}, b.Steps[2:]...)...)
	for i, want := range []time.Duration{-1, 3 * time.Second, 0, 2 * time.Second} {
		if i == 2 {
			continue // an error takes no time
		}
		got, ok := b.Took(b.Steps[i])
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%s took %v, want %v", b.Steps[i].Step, got, want)
		}
	}
}

func TestMoveSays(t *testing.T) {
	for want, m := range map[string]pools.Move{
		"moving from a to b: drains, 2 pods left": {Node: "n", From: "a", To: "b", As: "n", Step: pools.MoveDrains, Detail: "2 pods left"},
		"moving from a to no cluster: drained":    {Node: "n", From: "a", As: "n", Step: pools.MoveDrained},
		"moving in a from node-1 to n: begun":     {Node: "node-1", From: "a", To: "a", As: "n", Step: pools.MoveBegun},
	} {
		if got := m.Says(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
