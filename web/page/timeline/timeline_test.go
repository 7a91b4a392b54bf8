package timeline_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/web/page/timeline"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// boot returns a boot that began at the epoch, with a step each some seconds after it.
func boot(id, cluster string, steps ...any) boots.Record {
	b := boots.Record{ID: id, MAC: pools.MAC{2}, Node: "m1", Cluster: cluster, Image: "debian-12", Started: epoch}
	for i := 0; i < len(steps); i += 2 {
		s := boots.StepTime{Step: steps[i].(boots.Step), Time: epoch.Add(time.Duration(steps[i+1].(int)) * time.Second)}
		b.Steps = append(b.Steps, s)
	}
	return b
}

// failed returns a boot with an error in the last step of its timeline.
func failed(b boots.Record, why string) boots.Record {
	b.Error, b.Steps[len(b.Steps)-1].Error = why, why
	return b
}

func golden(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "testdata/"+file, append(text, '\n'))
}

// TestWaterfalls keeps drawings of typical boots.
func TestWaterfalls(t *testing.T) {
	complete := boot("c", "", boots.StepDiscover, 0, boots.StepOffer, 1, boots.StepScript, 5, boots.StepOnline, 100)
	earlier := []boots.Record{
		boot("b", "", boots.StepDiscover, 0, boots.StepOffer, 3, boots.StepScript, 9),
		boot("a", "", boots.StepDiscover, 0, boots.StepOffer, 2, boots.StepScript, 12),
	}
	for name, w := range map[string]timeline.Waterfall{
		"complete.json":    timeline.New(&complete, earlier, epoch.Add(time.Hour), "ready"),
		"in-progress.json": timeline.New(&earlier[0], nil, epoch.Add(20*time.Second), "booting"),
	} {
		golden(t, name, w)
	}
	broken := failed(boot("d", "tenant-a", boots.StepDiscover, 0, boots.StepOffer, 1, boots.StepImage, 30), "404\nnot\x1b[31m found")
	golden(t, "failing.json", timeline.New(&broken, nil, epoch.Add(time.Minute), "failing"))
	golden(t, "boots.json", timeline.Boots("/nodes/m1", "b", []boots.Record{broken, complete, earlier[0]}))
}

// checkBar fails the test for a bar outside of the drawing, or without a width.
func checkBar(t *testing.T, what string, b timeline.Bar) {
	t.Helper()
	if b.X < 0 || b.Width < 1 || b.X+b.Width > timeline.Width {
		t.Errorf("%s: a bar from %d with the width %d", what, b.X, b.Width)
	}
}

// TestOddClocks: whatever the times of steps are, all bars are in the drawing, and no duration
// is negative.
func TestOddClocks(t *testing.T) {
	for name, b := range map[string]boots.Record{
		"no step":             boot("a", ""),
		"one step":            boot("a", "", boots.StepDiscover, 0),
		"all at once":         boot("a", "", boots.StepDiscover, 0, boots.StepOffer, 0, boots.StepOnline, 0),
		"before its start":    boot("a", "", boots.StepDiscover, -1000, boots.StepOffer, -10),
		"backwards":           boot("a", "", boots.StepDiscover, 100, boots.StepOffer, 50, boots.StepScript, 7),
		"years":               boot("a", "", boots.StepDiscover, 0, boots.StepOnline, 1<<30),
		"a step of another":   boot("a", "", boots.StepDiscover, 0, boots.Step("no such step"), 1),
		"an error at the end": failed(boot("a", "", boots.StepDiscover, 0, boots.StepOffer, 9), "x"),
		"only an error":       failed(boot("a", "", boots.StepDiscover, 0), "x"),
	} {
		for _, now := range []time.Time{epoch.Add(-time.Hour), epoch, epoch.Add(24 * time.Hour)} {
			for _, how := range []string{"", "booting"} {
				w := timeline.New(&b, []boots.Record{b, b}, now, how)
				for _, s := range w.Steps {
					checkBar(t, name+": "+s.Step, s.Bar)
				}
				if text := fmt.Sprint(w); strings.Contains(text, " -") && !strings.Contains(name, "before") {
					t.Errorf("%s: %s", name, text)
				}
			}
		}
		for _, line := range timeline.Boots("/nodes/m1", "a", []boots.Record{b, b}) {
			for _, bar := range line.Bars {
				checkBar(t, name, bar)
			}
		}
	}
}

// TestHostileTexts: texts of machines are one short line each, and a boot with any number of
// lines shows the last ones.
func TestHostileTexts(t *testing.T) {
	b := boot("a", "", boots.StepDiscover, 0)
	long := "x\r\ny\x1b]0;\u202e" + strings.Repeat("z", 10_000)
	for i := range 1000 {
		b.Steps = append(b.Steps, boots.StepTime{Step: boots.StepImage, Time: epoch.Add(time.Duration(i) * time.Second), Detail: long, Error: long})
	}
	b.Error = long
	w := timeline.New(&b, nil, epoch.Add(time.Hour), "failing")
	if n := len(w.Steps); n > 65 || w.Steps[n-2].At != "999 s" {
		t.Errorf("got %d lines, the last at %s", n, w.Steps[max(n-2, 0)].At)
	}
	check := func(what, s string, most int) {
		t.Helper()
		if len(s) > most || strings.ContainsAny(s, "\r\n\x1b\u202e") {
			t.Errorf("%s: %d bytes: %.60q", what, len(s), s)
		}
	}
	for _, s := range w.Steps {
		check("a detail", s.Detail, 310)
		check("an error", s.Error, 610)
	}
	for _, line := range timeline.Boots("/nodes/m1", "a", []boots.Record{b}) {
		check("a result", line.Result, 130)
	}
}

// TestUsual: what is usual is the median of the earlier boots, if there are two at least.
func TestUsual(t *testing.T) {
	b := boot("z", "", boots.StepDiscover, 0, boots.StepOffer, 1)
	took := func(seconds ...int) (all []boots.Record) {
		for _, s := range seconds {
			all = append(all, boot("a", "", boots.StepDiscover, 0, boots.StepOffer, s))
		}
		return append(all, boot("b", "", boots.StepDiscover, 0), failed(boot("c", "", boots.StepDiscover, 0, boots.StepOffer, 500), "x"))
	}
	for _, tt := range []struct {
		earlier []boots.Record
		want    string
	}{
		{took(), ""}, {took(9), ""}, {took(9, 2), "9.0 s"}, {took(9, 2, 3), "3.0 s"}, {took(60, 2, 3, 60, 60), "60 s"},
	} {
		if got := timeline.New(&b, tt.earlier, epoch, "").Steps[1].Usual; got != tt.want {
			t.Errorf("%d earlier ones: got %q, want %q", len(tt.earlier), got, tt.want)
		}
	}
}
