package boots_test

import (
	"testing"
	"time"

	"drover/pools/boots"
)

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
