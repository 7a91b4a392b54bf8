package browser

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"drover/pools/boots"
)

// watched is how long a page is watched for stalls.
const watched = 10 * time.Second

// BenchmarkTenThousand loads views of a farm of 10 000 machines, of which 2 000 boot: 200 steps
// come each second. It reports the median and the worst first paint, and then, of the page that
// refreshes for ten seconds, the longest stall of the main thread (0: none over 50 ms), and the
// largest refresh. The server and the browser share the host.
func BenchmarkTenThousand(b *testing.B) {
	const nodes, booting = 10_000, 2_000
	f := newFarm(b, nodes)
	for i := range nodes {
		n := len(boots.Steps())
		if i >= nodes-booting {
			n = 2 + i%6
		}
		f.boot(b, mac(i), n, time.Minute, "")
	}
	tab := open(b, f)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.keepBooting(ctx, nodes-booting, booting)
	}()
	b.Cleanup(func() {
		cancel()
		<-done
	})
	for _, path := range []string{"/", "/nodes", "/nodes?state=booting&sort=-since", "/nodes/" + name(nodes-1)} {
		b.Run(path, func(b *testing.B) {
			var paints []float64
			for b.Loop() {
				tab.Visit(path)
				tab.Until("a paint", `performance.getEntriesByName("first-contentful-paint").length === 1`)
				paints = append(paints, Value[float64](tab, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
			}
			slices.Sort(paints)
			b.ReportMetric(paints[len(paints)/2], "ms/paint")
			b.ReportMetric(paints[len(paints)-1], "ms/worst-paint")
			Value[bool](tab, `window.stall = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) stall = Math.max(stall, e.duration); }).observe({type: "longtask", buffered: true}); performance.clearResourceTimings(); true`)
			time.Sleep(watched)
			b.ReportMetric(Value[float64](tab, "window.stall"), "ms/stall")
			b.ReportMetric(Value[float64](tab, `Math.max(0, ...performance.getEntriesByType("resource").map((e) => e.encodedBodySize)) / 1000`), "kB/refresh")
			b.ReportMetric(Value[float64](tab, `performance.getEntriesByType("resource").length`), "refreshes")
		})
	}
}

// keepBooting lets each of n machines from a number on report an error again and again.
func (f *farm) keepBooting(ctx context.Context, from, n int) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_ = f.Store.Boots.Step(mac(from+i%n), "", boots.Event{Step: boots.StepImage, Error: fmt.Sprintf("try %d", i)})
	}
}
