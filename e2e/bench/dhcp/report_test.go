package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	main "drover/e2e/bench/dhcp"
	"drover/e2e/fixture"
)

// report is one round of all servers in which drover keeps every limit.
func report() *main.Report {
	r := &main.Report{
		Versions:    map[string]string{"drover": "1a2b3c4", "kea": "2.2.0", "dnsmasq": "2.90"},
		LoadAverage: [2]string{"0.10", "1.90"}, Processors: 2, Seconds: 4,
		Servers: map[string]main.Figures{}, Rounds: map[string][]main.Figures{},
	}
	drover := main.Figures{
		Perfdhcp: 8000, Limited: true, Own: 12000, CPU: 0.4, CPUAt: 2000, OwnCPU: 0.45, P50: 0.9, P99: 9, Max: 30,
		Peak: 15000, PeakCPU: 0.3, RSS: 70, Leases: 60000, Overload: 14000, OverloadShare: 0.93, OverloadBegun: 140000,
	}
	one, two := drover, drover
	one.Perfdhcp, one.CPU, one.P50, one.RSS, one.Limited = 6000, 0.8, 0.3, 25, false
	two.Perfdhcp, two.CPU, two.P50, two.RSS, two.Limited = 5000, 0.7, 0.2, 30, false
	small := main.Figures{Perfdhcp: 240, CPU: 30, CPUAt: 240, Peak: 500, PeakCPU: 28, Lost: 0.8, RSS: 5}
	main.Add(r, "drover", drover)
	main.Add(r, "kea", one)
	main.Add(r, "kea-mt", two)
	main.Add(r, "dnsmasq", small)
	return r
}

func TestReport(t *testing.T) {
	var got strings.Builder
	if err := main.Print(report(), &got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.golden")
	fixture.Golden(t, golden, got.String())
}

func TestVerdict(t *testing.T) {
	if err := main.Failure(report()); err != nil {
		t.Fatalf("a good report: %v", err)
	}
	tests := []struct {
		name string
		edit func(*main.Figures)
		want string
	}{
		{"processor time", func(f *main.Figures) { f.CPU = 0.71 }, "against Kea's"},
		{"processor time that was not measured", func(f *main.Figures) { f.CPU = 0 }, "CPU s per 10 000"},
		{"slower than Kea", func(f *main.Figures) { f.Perfdhcp = 5999 }, "against Kea's"},
		{"not ten times dnsmasq", func(f *main.Figures) { f.Perfdhcp = 2399 }, "10 times dnsmasq's"},
		{"latency", func(f *main.Figures) { f.P99 = 10.1 }, "p99"},
		{"usual latency", func(f *main.Figures) { f.P50 = 1.1 }, "p50"},
		{"memory", func(f *main.Figures) { f.RSS = 121 }, "MB resident"},
		{"collapse", func(f *main.Figures) { f.OverloadShare = 0.79 }, "10 x peak"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := report()
			f := r.Servers["drover"]
			tt.edit(&f)
			r.Servers["drover"] = f
			r.Verdict = main.Judge(r.Servers)
			if err := main.Failure(r); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// Declared nodes have a table and limits of their own.
func TestDeclaredNodes(t *testing.T) {
	r := report()
	main.Add(r, "drover-nodes", r.Servers["drover"])
	main.Add(r, "kea-nodes", r.Servers["kea"])
	if err := main.Failure(r); err != nil || len(r.Verdict) != 7+6 {
		t.Errorf("a good report: %v, %v", err, r.Verdict)
	}
	slow := r.Servers["drover"]
	slow.Perfdhcp = 5000
	r.Rounds["drover-nodes"] = nil
	main.Add(r, "drover-nodes", slow)
	if err := main.Failure(r); err == nil || !strings.Contains(err.Error(), "against Kea's, declared nodes") {
		t.Errorf("slower than Kea: got %v", err)
	}
	var got strings.Builder
	if err := main.Print(r, &got); err != nil || !strings.Contains(got.String(), "10000 declared nodes") || !strings.Contains(got.String(), "kea-nodes") {
		t.Errorf("got %v,\n%s", err, got.String())
	}
}

// DHCPv6 has a table and limits of its own, in which figures of the generator are left out.
func TestDHCPv6(t *testing.T) {
	full := report()
	r := &main.Report{Servers: map[string]main.Figures{}, Rounds: map[string][]main.Figures{}}
	main.Add(r, "drover-6", full.Servers["drover"])
	main.Add(r, "kea-6", full.Servers["kea"])
	main.Add(r, "kea-mt-6", full.Servers["kea-mt"])
	if err := main.Failure(r); err != nil || len(r.Verdict) != 2 {
		t.Errorf("a good report: %v, %v", err, r.Verdict)
	}
	var got strings.Builder
	if err := main.Print(r, &got); err != nil || !strings.Contains(got.String(), "kea-mt-6") || strings.Contains(got.String(), "p50") {
		t.Errorf("got %v,\n%s", err, got.String())
	}
	for name, edit := range map[string]func(*main.Figures){
		"rate": func(f *main.Figures) { f.Perfdhcp = 5999 }, "processor time": func(f *main.Figures) { f.CPU = 0.71 },
	} {
		f := full.Servers["drover"]
		edit(&f)
		r.Rounds["drover-6"] = nil
		main.Add(r, "drover-6", f)
		if err := main.Failure(r); err == nil || !strings.Contains(err.Error(), "against Kea's, DHCPv6") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestUnmeasuredFiguresAreSkipped(t *testing.T) {
	drover := report().Servers["drover"]
	if got := main.Judge(map[string]main.Figures{"drover": drover}); len(got) != 4 {
		t.Errorf("drover alone: got %v, want p50, p99, memory and overload", got)
	}
	if got := main.Judge(map[string]main.Figures{"kea": drover}); got != nil {
		t.Errorf("without drover: got %v, want none", got)
	}
}

// Each of Kea's figures is the better one of its two configurations.
func TestKeaBest(t *testing.T) {
	best, ok := main.KeaBest(report().Servers, "")
	if !ok || best.Perfdhcp != 6000 || best.CPU != 0.7 || best.P50 != 0.2 || best.RSS != 25 {
		t.Errorf("got %+v, want 6000/s, 0.7 s, 0.2 ms, 25 MB", best)
	}
	alone := main.Figures{Perfdhcp: 1}
	if best, ok := main.KeaBest(map[string]main.Figures{"kea-mt": alone}, ""); !ok || best != alone {
		t.Errorf("with threads alone: got %+v, %t", best, ok)
	}
}

func TestRoundsGiveMedians(t *testing.T) {
	r := &main.Report{Servers: map[string]main.Figures{}, Rounds: map[string][]main.Figures{}}
	for _, f := range []main.Figures{{Perfdhcp: 100, P99: 9}, {Perfdhcp: 900, P99: 1, Limited: true}, {Perfdhcp: 300, P99: 2}} {
		main.Add(r, "drover", f)
	}
	if got := r.Servers["drover"]; got.Perfdhcp != 300 || got.P99 != 2 || !got.Limited {
		t.Errorf("got %+v, want 300/s, 2 ms, limited", got)
	}
	main.Add(r, "drover", main.Figures{Perfdhcp: 400})
	if got := r.Servers["drover"].Perfdhcp; got != 350 {
		t.Errorf("of four rounds got %g, want 350", got)
	}
}

func TestBusyHostIsReported(t *testing.T) {
	r := report()
	r.Others = 0.3
	var got strings.Builder
	if err := main.Print(r, &got); err != nil || !strings.Contains(got.String(), "others had the server's processor for 30 % of the time") ||
		!strings.Contains(got.String(), "worth little") {
		t.Errorf("got %v,\n%s", err, got.String())
	}
}
