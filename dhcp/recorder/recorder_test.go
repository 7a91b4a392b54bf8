package recorder_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"drover/dhcp"
	"drover/dhcp/recorder"
	"drover/e2e/fixture"
	"drover/pools/resolve"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func TestDone(t *testing.T) {
	var logged fixture.Log
	var got []dhcp.Exchange
	var r recorder.Recorder
	r.SetUp(slog.New(slog.NewTextHandler(&logged, nil)), func(x dhcp.Exchange) { got = append(got, x) }, func() time.Time { return noon.Add(time.Millisecond) })
	r.Done(&dhcp.Exchange{Time: noon, Type: "DISCOVER", Decision: dhcp.Offered})
	if len(got) != 1 || got[0].Decision != dhcp.Offered || got[0].Took != time.Millisecond {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(logged.String(), "decision=offered type=DISCOVER took=1ms") {
		t.Errorf("got log\n%s", logged.String())
	}
}

// TestLines: lines of strangers take none of those of declared machines.
func TestLines(t *testing.T) {
	var logged fixture.Log
	var r recorder.Recorder
	r.SetUp(slog.New(slog.NewTextHandler(&logged, nil)), nil, func() time.Time { return noon })
	lines := func(p *resolve.Plan) int {
		before := strings.Count(logged.String(), "decision=")
		for range 250 {
			r.Done(&dhcp.Exchange{Plan: p, Decision: dhcp.Offered})
		}
		return strings.Count(logged.String(), "decision=") - before
	}
	if n := lines(&resolve.Plan{Node: "x", CatchAll: true}); n < 20 || n > 100 {
		t.Errorf("%d lines of strangers", n)
	}
	if n := lines(&resolve.Plan{Node: "m1"}); n != 250 {
		t.Errorf("%d lines of a declared machine, want 250", n)
	}
}

// TestPanic: neither a panic of an answer nor one of the report, nor both, get any further.
func TestPanic(t *testing.T) {
	for name, tt := range map[string]struct{ answer, report bool }{
		"answer": {answer: true},
		"report": {report: true},
		"both":   {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var logged fixture.Log
			var last dhcp.Exchange
			var r recorder.Recorder
			r.SetUp(slog.New(slog.NewTextHandler(&logged, nil)), func(x dhcp.Exchange) {
				last = x
				if tt.report {
					panic("bug of the report")
				}
			}, func() time.Time { return noon })
			func() {
				x := dhcp.Exchange{Time: noon, Reply: "OFFER", Decision: dhcp.Offered}
				defer r.Rescue(&x)
				if tt.answer {
					panic("bug of the answer")
				}
				r.Done(&x)
			}()
			if failed := last.Decision == dhcp.Failed && last.Reply == "" && last.Err != nil; failed != tt.answer {
				t.Errorf("got %+v", last)
			}
			if strings.Contains(logged.String(), "bug of the report") != tt.report || strings.Contains(logged.String(), "bug of the answer") != tt.answer {
				t.Errorf("got log\n%s", logged.String())
			}
		})
	}
}
