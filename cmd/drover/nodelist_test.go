package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"drover/e2e/farmtest"
	"drover/hardware"
	"drover/pools"
	"drover/pools/resolve"
	"drover/web"
)

// TestNodeListWatch: the command shows what a selector chooses, and then each change of it.
func TestNodeListWatch(t *testing.T) {
	apiSite(t)
	for _, tt := range []struct {
		args  string
		lines []string // parts of the lines, in their order
	}{
		{"node list -w -l pool=compute,state!=ready", []string{"CHANGE", "is m1", "added n2 compute 10.28.0.12 new", "changed n2 compute 10.28.0.20 new", "removed n2"}},
		{"node list n2 m1 --watch", []string{"CHANGE", "is m1 compute 10.28.0.11 new", "added n2", "changed n2", "removed n2"}},
		{"node list -w -o json", []string{`{"change":"is","node":{"pool":"compute","name":"m1"`, `{"change":"added","node":{"pool":"compute","name":"n2"`, `{"change":"changed"`, `{"change":"removed"`}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			r, w := io.Pipe()
			done := make(chan int, 1)
			go func() {
				done <- run(ctx, strings.Fields(tt.args), w, io.Discard)
				_ = w.Close()
			}()
			lines := bufio.NewScanner(r)
			next := func(want string) {
				t.Helper()
				if !lines.Scan() {
					t.Fatalf("the output has ended, want %q", want)
				}
				if got := strings.Join(strings.Fields(lines.Text()), " "); !strings.HasPrefix(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			before := len(tt.lines) - 3
			for _, want := range tt.lines[:before] {
				next(want)
			}
			for i, line := range []string{
				"node add n2 --pool compute --mac 52:54:00:00:00:02 --ip 10.28.0.12", "node set n2 --ip 10.28.0.20", "node rm n2 -y",
			} {
				if code, _, errs := drover(t, line); code != 0 {
					t.Fatal(errs)
				}
				next(tt.lines[before+i])
			}
			cancel()
			if code := <-done; code != 0 {
				t.Errorf("exit %d", code)
			}
		})
	}
	command{"node list -w -o yaml", 2, "", "--watch prints a table or json"}.run(t)
}

// bigFarm serves a farm of n nodes in 20 pools, each with two boots.
func bigFarm(tb testing.TB, n int) *web.Server {
	tb.Helper()
	const inPools, boots = 20, 2
	var b strings.Builder
	b.WriteString("server: {interfaces: [eth1], address: 10.28.0.2}\nsubnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1}]\ntags: {gpu: {labels: {gpu: \"yes\"}}}\npools:\n")
	for p := range inPools {
		fmt.Fprintf(&b, "  - name: p%d\n    image: debian-12\n    nodes:\n", p)
		for i := p; i < n; i += inPools {
			mac := pools.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}
			fmt.Fprintf(&b, "      - {name: m%dc%d, macs: [\"%s\"], ip: 10.28.%d.%d, tags: [gpu]}\n", i/45, i%45, mac, 10+i>>8, i&0xff)
		}
	}
	store, live := farmtest.Open(tb, b.String())
	now := time.Now()
	for _, node := range live.Farm().Nodes() {
		plan := live.Farm().Resolve(resolve.Query{MAC: node.MACs[0]})
		for k := range boots {
			store.Boots.Discover(plan, now.Add(time.Duration(k-boots)*time.Hour))
		}
	}
	if got := len(store.Boots.List()); got != n*boots {
		tb.Fatalf("%d boots", got)
	}
	s := &web.Server{API: apiOf(store, live, hardware.New())}
	serveSite(tb, s)
	return s
}

// BenchmarkNodeList is the time of drover node list with a selector, and of the whole list, of
// 10 000 nodes: of the server and of the command.
func BenchmarkNodeList(b *testing.B) {
	s := bigFarm(b, 10_000)
	b.Run("states for metrics", func(b *testing.B) {
		for b.Loop() {
			s.API.CountStates()
		}
	})
	for name, args := range map[string]string{
		"selector": "node list -l pool=p3,state=stuck", "all": "node list", "json": "node list -o json", "range": "node list m3c[1-40]",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if code := run(b.Context(), strings.Fields(args), io.Discard, io.Discard); code != 0 {
					b.Fatalf("exit %d", code)
				}
			}
		})
	}
}
