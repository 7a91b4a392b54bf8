package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	main "drover/e2e/bench/boot"
	"drover/e2e/bench/stats"
	"drover/e2e/fixture"
)

// report is a run in which drover keeps every limit.
func report() *main.Report {
	r := &main.Report{
		Versions: map[string]string{"drover": "1a2b3c4", "nginx": "1.22.1", "dnsmasq": "2.90"}, Processors: 2,
		LoadAverage: [2]string{"0.10", ""},
		TFTP:        []main.TFTPRow{{Name: "1 clients", Check: stats.Ratio{Median: 1.5, Low: 1.4, High: 1.6, Rounds: 7}.AtLeast("1 clients: MB/s against atftpd's", 1)}},
		Initrd:      &main.InitrdSizes{Kernel: "6.1.0-56-amd64", Drover: 8_500_000, Mkinitrd: 30_000_000, LiveBoot: 31_000_000},
		Boots: map[string][]main.Boot{
			"drover":  {{Seconds: 30, Kernel: 6, Init: 11, Root: 12, Fetched: 230, Used: 480, Host: 40}, {Seconds: 32, Kernel: 6, Init: 11, Root: 12, Fetched: 230, Used: 480, Host: 40}, {Seconds: 90, Kernel: 6, Init: 11, Root: 12, Fetched: 230, Used: 480, Host: 40}},
			"by-hand": {{Seconds: 50, Kernel: 8, Init: 25, Root: 30, Fetched: 250, Used: 500, Host: 80}},
		},
	}
	for _, conns := range []int{1, 8, 64} {
		row := main.HTTPRow{Connections: conns, Rounds: map[string][]main.HTTPFigures{
			"drover": {{Rate: 3, CPU: 0.3}, {Rate: 1.5, CPU: 0.6}, {Rate: 3.1, CPU: 0.3}},
			"nginx":  {{Rate: 2.9, CPU: 0.31}, {Rate: 1.4, CPU: 0.62}, {Rate: 2.9, CPU: 0.31, Others: 0.5}},
		}}
		main.Compare(&row)
		r.HTTP = append(r.HTTP, row)
	}
	main.End(r)
	r.LoadAverage[1] = "1.90"
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
		edit func(*main.Report)
		want string // part of the error; empty: none
	}{
		{"processor time of one connection is not judged", func(r *main.Report) { r.HTTP[0].CPU = stats.Ratio{Median: 2, Low: 1.9, High: 2.1, Rounds: 9} }, ""},
		{"one connection", func(r *main.Report) { r.HTTP[0].Rate = stats.Ratio{Median: 0.5, Low: 0.4, High: 0.6, Rounds: 9} }, "1 connections: GB/s"},
		{"processor time", func(r *main.Report) { r.HTTP[1].CPU = stats.Ratio{Median: 1.1, Low: 1.05, High: 1.2, Rounds: 9} }, "8 connections: CPU"},
		{"throughput", func(r *main.Report) { r.HTTP[2].Rate = stats.Ratio{Median: 0.9, Low: 0.8, High: 0.95, Rounds: 9} }, "64 connections: GB/s"},
		{"a slow row of TFTP", func(r *main.Report) { r.TFTP[0].Check.Pass = false }, "atftpd"},
		{"a large initrd", func(r *main.Report) { r.Initrd.Drover = 10_000_001 }, "initrd"},
		{"a slow boot", func(r *main.Report) { r.Boots["drover"][0].Seconds = 41; r.Boots["drover"][1].Seconds = 41 }, "boot"},
		{"a boot that is fast only beside a pause", func(r *main.Report) { r.Boots["by-hand"][0].Init = 15 }, "without what systemd takes"},
		{"what was not measured is not judged", func(r *main.Report) { *r = main.Report{} }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := report()
			tt.edit(r)
			main.End(r)
			err := main.Failure(r)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
