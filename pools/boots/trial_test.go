package boots_test

import (
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
)

var oldID, newID, newerID = strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)

// record returns a boot of a generation that has got to a step.
func record(id, generation, cluster string, last boots.Step) boots.Record {
	r := boots.Record{ID: id, MAC: mac(1), Node: "m1", Image: "debian-12", Generation: generation, Cluster: cluster}
	for _, s := range boots.Steps() {
		r.Steps = append(r.Steps, boots.StepTime{Step: s.Step, Time: epoch})
		if s.Step == last {
			break
		}
	}
	return r
}

// TestFailed: only a boot that stands where everything is in the image is the image's fault.
func TestFailed(t *testing.T) {
	blamed := map[boots.Step]bool{boots.StepKernel: true, boots.StepInitrd: true, boots.StepInit: true, boots.StepConfig: true, boots.StepSwitch: true}
	for _, s := range boots.Steps() {
		for _, cluster := range []string{"", "tenant-a"} {
			r := record("1", newID, cluster, s.Step)
			if got := r.Failed(); got != blamed[s.Step] {
				t.Errorf("at %s, cluster %q: got %t", s.Step, cluster, got)
			}
		}
	}
	r := record("1", "", "", boots.StepSwitch)
	if r.Failed() || new(boots.Record).Failed() {
		t.Error("a boot without a generation is not one of an image")
	}
}

// TestFallsBack: a node falls back after two boots of a generation, one after the other, and never after
// one, never for another cause, and never without one that was ready on it.
func TestFallsBack(t *testing.T) {
	type boot struct {
		id, generation string
		last           boots.Step
	}
	bad := func(id, generation string) boot { return boot{id, generation, boots.StepSwitch} }
	good := func(id, generation string) boot { return boot{id, generation, boots.StepReady} }
	for _, tt := range []struct {
		name  string
		boots []boot
		fell  bool
		good  string
	}{
		{"two in a row", []boot{good("1", oldID), bad("2", newID), bad("3", newID)}, true, oldID},
		{"one", []boot{good("1", oldID), bad("2", newID)}, false, oldID},
		{"the same one, told twice", []boot{good("1", oldID), bad("2", newID), bad("2", newID)}, false, oldID},
		{"none was ready", []boot{bad("1", newID), bad("2", newID), bad("3", newID)}, false, ""},
		{"it was ready itself", []boot{good("1", newID), bad("2", newID), bad("3", newID)}, false, newID},
		{"of two generations", []boot{good("1", oldID), bad("2", newID), bad("3", newerID)}, false, oldID},
		{"ready between", []boot{good("1", oldID), bad("2", newID), good("3", newID), bad("4", newID), bad("5", newID)}, false, newID},
		{"the old one between", []boot{good("1", oldID), bad("2", newID), good("3", oldID), bad("4", newID)}, true, oldID},
		{"the cluster is the cause", []boot{good("1", oldID), {"2", newID, boots.StepToken}, {"3", newID, boots.StepCSR}, {"4", newID, boots.StepOnline}}, false, oldID},
		{"the queue is the cause", []boot{good("1", oldID), {"2", newID, boots.StepQueued}, {"3", newID, boots.StepNetwork}}, false, oldID},
		{"never sent", []boot{good("1", oldID), {"2", newID, boots.StepScript}, {"3", newID, boots.StepLoader}}, false, oldID},
		{"never heard of again", []boot{good("1", oldID), {"2", newID, boots.StepInitrd}, {"3", newID, boots.StepKernel}}, true, oldID},
		{"ready on the old one after that", []boot{good("1", oldID), bad("2", newID), bad("3", newID), good("4", oldID)}, true, oldID},
		{"the old one fails, too", []boot{good("1", oldID), bad("2", newID), bad("3", newID), bad("4", oldID), bad("5", oldID)}, true, oldID},
		{"ready on the new one after that", []boot{good("1", oldID), bad("2", newID), bad("3", newID), good("4", newID)}, false, newID},
	} {
		var trial pools.ImageTrial
		none := func(string) (boots.Record, bool) { return boots.Record{}, false }
		for _, b := range tt.boots {
			r := record(b.id, b.generation, "tenant-a", b.last)
			trial = boots.GivenUp(boots.Passed(trial, r), r, none, epoch)
		}
		if fell := !trial.FellBack.IsZero(); fell != tt.fell || trial.Good != tt.good {
			t.Errorf("%s: got %+v", tt.name, trial)
		}
	}
}

// TestFallsBackOnlyIfTheyFailed: a boot that was given up too early, by a forged DISCOVER, and has got
// further since, does not count.
func TestFallsBackOnlyIfTheyFailed(t *testing.T) {
	trial := boots.Passed(pools.ImageTrial{}, record("1", oldID, "", boots.StepOnline))
	now := map[string]boots.Record{"2": record("2", newID, "tenant-a", boots.StepToken)}
	find := func(id string) (boots.Record, bool) { r, ok := now[id]; return r, ok }
	trial = boots.GivenUp(trial, record("2", newID, "tenant-a", boots.StepKernel), find, epoch)
	trial = boots.GivenUp(trial, record("3", newID, "tenant-a", boots.StepSwitch), find, epoch)
	if !trial.FellBack.IsZero() || len(trial.Boots) != 1 {
		t.Errorf("got %+v", trial)
	}
	other := record("4", newID, "", boots.StepSwitch)
	other.Image = "fedora@sha256:" + newID // another image, once
	if got := boots.GivenUp(trial, other, find, epoch); !got.Equal(trial) {
		t.Errorf("another image: got %+v", got)
	}
}

// TestGivenUp: a table tells of a boot that a DISCOVER ends, once, and not of the firmware's further ones.
func TestGivenUp(t *testing.T) {
	table, c := openBoots(t)
	var told []boots.Record
	table.OnGivenUp = func(r boots.Record) { told = append(told, r) }
	p := declared(1)
	p.Generation = newID
	for range 2 {
		table.Discover(p, c.advance(time.Second))
		table.Discover(p, c.advance(time.Second))
		if _, err := table.Issue(p); err != nil {
			t.Fatal(err)
		}
		step(t, table, "", boots.StepKernel, boots.StepInitrd)
		c.advance(time.Minute)
	}
	if len(told) != 1 || told[0].Generation != newID || !told[0].Failed() {
		t.Errorf("got %+v", told)
	}
	if r, ok := table.Find(p.MAC, told[0].ID); !ok || r.ID != told[0].ID {
		t.Errorf("got %+v, %t", r, ok)
	}
	if _, ok := table.Find(p.MAC, "none"); ok {
		t.Error("found a boot that is none")
	}
}
