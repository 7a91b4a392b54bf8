package boots_test

import (
	"fmt"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
)

// took returns a boot. Steps are pairs: a step, and the time since the previous one.
func took(node string, began time.Time, steps ...any) boots.Record {
	b := boots.Record{ID: began.Format(time.RFC3339Nano) + node, MAC: pools.MAC{2, 0, 0, 0, 0, node[0]}, Node: node, Pool: "web", Cluster: "tenant-a", Started: began}
	at := began
	for i := 0; i < len(steps); i += 2 {
		at = at.Add(steps[i+1].(time.Duration))
		b.Steps = append(b.Steps, boots.StepTime{Step: steps[i].(boots.Step), Time: at})
	}
	return b
}

func TestMarkStuck(t *testing.T) {
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	// Five boots in which the image took 40 s, and the network 2 s; the newest
	// come first.
	var before []boots.Record
	for i := range 5 {
		before = append(before, took(fmt.Sprintf("%d", i), now.Add(-time.Hour), boots.StepDiscover, 0*time.Second,
			boots.StepInit, 5*time.Second, boots.StepNetwork, 2*time.Second, boots.StepImage, 40*time.Second, boots.StepReady, time.Minute))
	}
	ago := func(d time.Duration, steps ...any) boots.Record {
		b := took("n", now, steps...)
		shift := now.Add(-d).Sub(b.Steps[len(b.Steps)-1].Time)
		b.Started = b.Started.Add(shift)
		for i := range b.Steps {
			b.Steps[i].Time = b.Steps[i].Time.Add(shift)
		}
		return b
	}
	other := func(b boots.Record) boots.Record { b.Pool = "other"; return b }
	alone := func(b boots.Record) boots.Record { b.Cluster = ""; return b }
	failed := func(b boots.Record) boots.Record {
		b.Steps = append(b.Steps, boots.StepTime{Step: boots.StepImage, Time: now, Error: "no route"})
		return b
	}
	tests := []struct {
		name  string
		boot  boots.Record
		after boots.Step // empty: not stuck
		usual time.Duration
		limit time.Duration
	}{
		{"as fast as others", ago(30*time.Second, boots.StepNetwork, 0*time.Second), "", 0, 0},
		{"three times as slow", ago(2*time.Minute, boots.StepNetwork, 0*time.Second), "", 0, 0},
		{"and more", ago(2*time.Minute+1, boots.StepNetwork, 0*time.Second), boots.StepNetwork, 40 * time.Second, 2 * time.Minute},
		{"it failed meanwhile", failed(ago(2*time.Minute+1, boots.StepNetwork, 0*time.Second)), boots.StepNetwork, 40 * time.Second, 2 * time.Minute},
		{"a fast step", ago(time.Minute, boots.StepInit, 0*time.Second), "", 0, 0},
		{"and a minute of it", ago(time.Minute+1, boots.StepInit, 0*time.Second), boots.StepInit, 2 * time.Second, time.Minute},
		{"a step that none has come from", ago(3*time.Minute, boots.StepScript, 0*time.Second), "", 0, 0},
		{"and longer", ago(3*time.Minute+1, boots.StepScript, 0*time.Second), boots.StepScript, 0, 3 * time.Minute},
		{"another pool", other(ago(2*time.Minute+1, boots.StepNetwork, 0*time.Second)), "", 0, 0},
		{"Ready", ago(time.Hour, boots.StepReady, 0*time.Second), "", 0, 0},
		{"no cluster, online", alone(ago(time.Hour, boots.StepOnline, 0*time.Second)), "", 0, 0},
		{"no cluster, before", alone(ago(time.Hour, boots.StepSwitch, 0*time.Second)), boots.StepSwitch, 0, 3 * time.Minute},
		{"a clock that went back", ago(-time.Hour, boots.StepInit, 0*time.Second), "", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := boots.MarkStuck(append([]boots.Record{tt.boot}, before...), now)
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
		all := append([]boots.Record{ago(2*time.Minute+1, boots.StepNetwork, 0*time.Second)}, before[:4]...)
		if s := boots.MarkStuck(all, now)[0].Stuck; s != nil {
			t.Errorf("stuck: %+v", *s)
		}
	})
}

// Only the newest boot of a node counts, from whichever card.
func TestOnlyTheNewestIsStuck(t *testing.T) {
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	newest, older := took("n", now.Add(-time.Minute), boots.StepReady, time.Second), took("n", now.Add(-time.Hour), boots.StepInit, time.Second)
	older.MAC = pools.MAC{2, 0, 0, 0, 0, 99}
	all := []boots.Record{newest, older}
	for _, b := range boots.MarkStuck(all, now) {
		if b.Stuck != nil {
			t.Errorf("%s is stuck: %+v", b.ID, *b.Stuck)
		}
	}
	all = []boots.Record{older}
	if got := boots.MarkStuck(all, now); got[0].Stuck == nil {
		t.Errorf("alone it is not stuck: %+v", got[0])
	}
}

func TestTook(t *testing.T) {
	b := took("n", time.Unix(0, 0), boots.StepDiscover, 0*time.Second, boots.StepScript, 3*time.Second, boots.StepImage, 2*time.Second)
	b.Steps = append(b.Steps[:2:2], append([]boots.StepTime{{Step: boots.StepImage, Time: time.Unix(4, 0), Error: "no route"}}, b.Steps[2:]...)...)
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
