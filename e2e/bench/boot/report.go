package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"drover/e2e/bench/stats"
)

// A Report is the outcome of a run.
type Report struct {
	Time        time.Time         `json:"time"`
	Versions    map[string]string `json:"versions"`
	Processors  int               `json:"processors"`
	LoadAverage [2]string         `json:"loadAverage"` // of the host, before and after
	Quick       bool              `json:"quick"`

	HTTP    []HTTPRow         `json:"http,omitempty"`
	TFTP    []TFTPRow         `json:"tftp,omitempty"`
	Initrd  *InitrdSizes      `json:"initrd,omitempty"`
	Boots   map[string][]Boot `json:"boots,omitempty"` // by stack
	Verdict []stats.Check     `json:"verdict"`
}

func newReport(b *bench) *Report {
	return &Report{
		Time:       time.Now().UTC().Truncate(time.Second),
		Versions:   map[string]string{"drover": b.from, "nginx": b.programs.nginxVersion, "dnsmasq": b.programs.dnsmasqVersion},
		Processors: runtime.NumCPU(), LoadAverage: [2]string{stats.LoadAverage()}, Quick: b.quick,
	}
}

// end records the load of the host, and evaluates the limits.
func (r *Report) end() {
	r.LoadAverage[1] = stats.LoadAverage()
	r.Verdict = r.judge()
}

// failure is the error of a run in which drover failed.
func (r *Report) failure() error { return stats.Failure(r.Verdict) }

// judge checks the measured figures of drover against the limits.
func (r *Report) judge() (checks []stats.Check) {
	for _, row := range r.HTTP {
		name := fmt.Sprintf("HTTP, %d connections: ", row.Connections)
		if row.cpuJudged() {
			checks = append(checks, row.CPU.AtMost(name+"CPU per GB, against nginx'", 1))
		}
		checks = append(checks, row.Rate.AtLeast(name+"GB/s, against nginx'", 1))
	}
	for _, row := range r.TFTP {
		c := row.Check
		c.Name = "TFTP, " + c.Name
		checks = append(checks, c)
	}
	if r.Initrd != nil && r.Initrd.Mkinitrd > 0 {
		checks = append(checks, stats.AtMost("initrd: size, against mkinitramfs'", float64(r.Initrd.Drover)/float64(r.Initrd.Mkinitrd), 1.0/3))
	}
	if ours, theirs := r.Boots["drover"], r.Boots["by-hand"]; len(ours) > 0 && len(theirs) > 0 {
		checks = append(checks, stats.AtMost("boot: seconds to multi-user, against the hand-built stack's", r.seconds("drover")/r.seconds("by-hand"), 0.8),
			stats.AtMost("boot: the same without what systemd takes for its first word", r.median("drover", Boot.swift)/r.median("by-hand", Boot.swift), 0.8))
	}
	return checks
}

// bootFigures are the rows of the table of boots.
func bootFigures() []struct {
	title string
	get   func(Boot) float64
} {
	return []struct {
		title string
		get   func(Boot) float64
	}{
		{"s to multi-user", func(b Boot) float64 { return b.Seconds }},
		{"  s to the kernel's first line", func(b Boot) float64 { return b.Kernel }},
		{"  s to the start of the root's init", func(b Boot) float64 { return b.Init }},
		{"  s to systemd's first line", func(b Boot) float64 { return b.Root }},
		{"s without these last two's distance", Boot.swift},
		{"MB fetched", func(b Boot) float64 { return b.Fetched }},
		{"MB of RAM used at multi-user", func(b Boot) float64 { return b.Used }},
		{"s of the host's processors", func(b Boot) float64 { return b.Host }},
	}
}

// median returns the median of one figure of one stack.
func (r *Report) median(stack string, get func(Boot) float64) float64 {
	var values []float64
	for _, b := range r.Boots[stack] {
		values = append(values, get(b))
	}
	return stats.Median(values)
}

func (r *Report) seconds(stack string) float64 {
	return r.median(stack, func(b Boot) float64 { return b.Seconds })
}

// print writes the tables and the results of the checks.
func (r *Report) print(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "drover %s, nginx %s, dnsmasq %s; %d processors, load average %s to %s\n",
		r.Versions["drover"], r.Versions["nginx"], r.Versions["dnsmasq"], r.Processors, r.LoadAverage[0], r.LoadAverage[1])
	if r.HTTP != nil {
		fmt.Fprintln(&text)
		r.printHTTP(&text)
	}
	if r.Initrd != nil {
		fmt.Fprintf(&text, "\ninitrd of %s: drover %s; mkinitramfs %s, with live-boot %s\n", r.Initrd.Kernel,
			megabytes(r.Initrd.Drover), megabytes(r.Initrd.Mkinitrd), megabytes(r.Initrd.LiveBoot))
	}
	if r.Boots != nil {
		fmt.Fprintln(&text)
		r.printBoots(&text)
	}
	fmt.Fprintln(&text)
	for _, c := range r.Verdict {
		fmt.Fprintln(&text, c)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// columns aligns to the right; every cell ends with a tab.
func columns(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
}

func (r *Report) printHTTP(w io.Writer) {
	t := columns(w)
	fmt.Fprintf(t, "HTTP, connections\tdrover GB/s\tCPU s/GB\tnginx GB/s\tCPU s/GB\tGB/s ratio\tCPU ratio\tothers\t\n")
	for _, row := range r.HTTP {
		d, n := row.median("drover"), row.median("nginx")
		fmt.Fprintf(t, "%d\t%.2f\t%.3f\t%.2f\t%.3f\t%.2f\t%.2f\t%.0f %%\t\n", row.Connections, d.Rate, d.CPU, n.Rate, n.CPU,
			row.Rate.Median, row.CPU.Median, 100*max(d.Others, n.Others))
	}
	_ = t.Flush() // into memory
}

func (r *Report) printBoots(w io.Writer) {
	t := columns(w)
	fmt.Fprintf(t, "%-36s\tdrover\tby hand\tratio\t\n", "boot")
	for _, f := range bootFigures() {
		d, h := r.median("drover", f.get), r.median("by-hand", f.get)
		ratio := "-"
		if h > 0 {
			ratio = fmt.Sprintf("%.2f", d/h)
		}
		fmt.Fprintf(t, "%-36s\t%.1f\t%.1f\t%s\t\n", f.title, d, h, ratio)
	}
	_ = t.Flush() // into memory
}
