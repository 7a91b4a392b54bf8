package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/pools/boots"
)

// bootingRack is a server whose machines reach a step at each request.
type bootingRack struct {
	clusters map[string]string // by node
	steps    map[string][]boots.Step
	looks    int
}

func (r *bootingRack) boots(_ context.Context, node string) ([]boots.Record, error) {
	r.looks++
	b := boots.Record{ID: node, Node: node, Cluster: r.clusters[node], Started: time.Now()}
	for i, s := range r.steps[node][:min(r.looks, len(r.steps[node]))] {
		b.Steps = append(b.Steps, boots.StepTime{Step: s, Time: b.Started.Add(time.Duration(i) * time.Second)})
	}
	old := boots.Record{ID: "old " + node, Node: node, Started: time.Now().Add(-time.Hour), Steps: []boots.StepTime{{Step: boots.StepReady}}}
	return []boots.Record{b, old}, nil
}

func watch(r *bootingRack, out *strings.Builder, nodes ...string) *watcher {
	return &watcher{nodes: nodes, out: out, from: time.Now().Add(-time.Minute), every: time.Second, boots: r.boots, printed: map[string]int{}, waiting: map[string]bool{}}
}

func TestBootWatch(t *testing.T) {
	r := func() *bootingRack {
		return &bootingRack{
			clusters: map[string]string{"m1": "tenant-a", "m3": "tenant-a"},
			steps: map[string][]boots.Step{
				"m1": {boots.StepDiscover, boots.StepKernel, boots.StepJoined, boots.StepReady},
				"m2": {boots.StepDiscover, boots.StepSwitch, boots.StepOnline},
				"m3": {boots.StepDiscover},
				"m4": {boots.StepDiscover, boots.StepSwitch},
			},
		}
	}
	t.Run("until all are there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			if err := watch(r(), &out, "m1", "m2").run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(out.String(), "\n"); got != 7 || strings.Count(out.String(), "ready") != 1 {
				t.Errorf("got %d lines, want each of the 7 steps once:\n%s", got, &out)
			}
		})
	})
	t.Run("one does not arrive", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := watch(r(), &out, "m1", "m3").run(ctx)
			if err == nil || !strings.Contains(err.Error(), "not Ready in time: m3") {
				t.Errorf("got %v, want m3 named", err)
			}
		})
	})
	t.Run("without a cluster it ends at online, not at switch-root", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := watch(r(), &out, "m2", "m4").run(ctx)
			if err == nil || !strings.HasSuffix(err.Error(), "not Ready in time: m4") {
				t.Errorf("got %v, want m4 alone", err)
			}
		})
	})
	t.Run("an old boot and none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			w := watch(r(), &out, "m1", "m9")
			w.boots = func(_ context.Context, node string) ([]boots.Record, error) {
				if node == "m9" {
					return nil, nil
				}
				return []boots.Record{{ID: "old", Node: node, Started: time.Now().Add(-time.Hour), Steps: []boots.StepTime{{Step: boots.StepReady}}}}, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := w.run(ctx); err == nil || !strings.Contains(err.Error(), "not Ready in time: m1, m9") {
				t.Errorf("got %v, want both nodes named", err)
			}
			got := strings.SplitAfter(out.String(), "\n")
			if len(got) != 3 || !strings.HasPrefix(got[0], "m1: waiting for its next boot; the last one began at ") || got[1] != "m9: no boot yet, waiting for one\n" {
				t.Errorf("got %q, want a line for each node, once", got)
			}
		})
	})
	t.Run("interrupted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for want, nodes := range map[error][]string{context.Canceled: {"m3"}, nil: nil} {
				var out strings.Builder
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Minute, cancel)
				if err := watch(r(), &out, nodes...).run(ctx); !errors.Is(err, want) {
					t.Errorf("with nodes %v: got %v, want %v", nodes, err, want)
				}
			}
		})
	})
}
