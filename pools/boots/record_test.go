package boots_test

import (
	"testing"
	"time"

	"drover/pools/boots"
)

// A boot has the generation that its script named, and the next one has none until its own
// script.
func TestGeneration(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	of := func() string {
		t.Helper()
		r, _ := b.Current(mac(1))
		return r.Generation
	}
	b.Discover(plan(1), c.Now())
	if got := of(); got != "" {
		t.Errorf("before the script: got %q", got)
	}
	p := *plan(1)
	p.Generation = "0123"
	if _, err := b.Issue(&p); err != nil {
		t.Fatal(err)
	}
	step(t, b, "", boots.StepKernel)
	b = d.reopen(t, b, c)
	if got := of(); got != "0123" {
		t.Errorf("after the script and a restart: got %q", got)
	}
	b.Discover(plan(1), c.advance(time.Hour))
	if got := of(); got != "" {
		t.Errorf("after the next DISCOVER: got %q", got)
	}
}

func TestEnded(t *testing.T) {
	reached := func(cluster string, steps ...boots.Step) *boots.Record {
		r := &boots.Record{Cluster: cluster}
		for i, s := range steps {
			r.Steps = append(r.Steps, boots.StepTime{Step: s, Time: epoch.Add(time.Duration(i) * time.Second)})
		}
		return r
	}
	failed := reached("", boots.StepSwitch)
	failed.Steps = append(failed.Steps, boots.StepTime{Step: boots.StepOnline, Error: "no route"})
	tests := []struct {
		name string
		boot *boots.Record
		want bool
	}{
		{"nothing yet", reached(""), false},
		{"no cluster, at switch-root", reached("", boots.StepDiscover, boots.StepSwitch), false},
		{"no cluster, online failed", failed, false},
		{"no cluster, online", reached("", boots.StepSwitch, boots.StepOnline), true},
		{"a cluster, online", reached("tenant-a", boots.StepSwitch, boots.StepOnline), false},
		{"a cluster, joined", reached("tenant-a", boots.StepOnline, boots.StepJoined), false},
		{"a cluster, Ready", reached("tenant-a", boots.StepJoined, boots.StepReady), true},
		{"Ready before the node says that it joined", reached("tenant-a", boots.StepReady, boots.StepJoined), true},
		{"only a step of a later version", reached("", "coffee"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.boot.Ended(); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
