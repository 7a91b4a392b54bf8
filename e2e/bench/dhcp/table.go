package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A row is one figure of the table.
type row struct {
	title  string
	format string
	less   bool // a smaller figure is better
	of     func(*Figures) *float64
	six    bool // measured of DHCPv6 too
}

var rows = []row{
	{"exchanges/s under 1 % loss, perfdhcp", "%.0f", false, func(f *Figures) *float64 { return &f.Perfdhcp }, true},
	{"exchanges/s under 1 % loss, own generator", "%.0f", false, func(f *Figures) *float64 { return &f.Own }, false},
	{"exchanges/s at saturation (peak)", "%.0f", false, func(f *Figures) *float64 { return &f.Peak }, false},
	{"exchanges/s at 10 x peak", "%.0f", false, func(f *Figures) *float64 { return &f.Overload }, false},
	{"  share of the peak", "%.2f", false, func(f *Figures) *float64 { return &f.OverloadShare }, false},
	{"  DISCOVERs/s then", "%.0f", false, func(f *Figures) *float64 { return &f.OverloadBegun }, false},
	{"CPU s per 10 000 exchanges, perfdhcp", "%.3f", true, func(f *Figures) *float64 { return &f.CPU }, true},
	{"  then exchanges/s", "%.0f", false, func(f *Figures) *float64 { return &f.CPUAt }, true},
	{"  own generator, at 2000/s", "%.3f", true, func(f *Figures) *float64 { return &f.OwnCPU }, false},
	{"  own generator, at saturation", "%.3f", true, func(f *Figures) *float64 { return &f.PeakCPU }, false},
	{"p50 at 2000/s, DISCOVER to ACK, ms", "%.2f", true, func(f *Figures) *float64 { return &f.P50 }, false},
	{"p99", "%.2f", true, func(f *Figures) *float64 { return &f.P99 }, false},
	{"max", "%.2f", true, func(f *Figures) *float64 { return &f.Max }, false},
	{"lost at 2000/s, share", "%.4f", true, func(f *Figures) *float64 { return &f.Lost }, false},
	{"memory, MB resident", "%.0f", true, func(f *Figures) *float64 { return &f.RSS }, true},
	{"  with so many addresses given", "%.0f", false, func(f *Figures) *float64 { return &f.Leases }, true},
}

// print writes the table, the ratios and the results of the checks.
func (r *Report) print(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "drover %s, Kea %s, dnsmasq %s\n", r.Versions["drover"], r.Versions["kea"], r.Versions["dnsmasq"])
	fmt.Fprintf(&text, "%d processors, one for the server and one for the load; %g s a step\n", r.Processors, r.Seconds)
	fmt.Fprintf(&text, "load average %s to %s; others had the server's processor for %.0f %% of the time\n\n",
		r.LoadAverage[0], r.LoadAverage[1], 100*r.Others)
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, group := range []string{"", declared, six} {
		r.table(t, group)
	}
	_ = t.Flush() // into memory
	if r.Others >= disturbed {
		fmt.Fprintln(&text, "\nThe host was busy with other things: these figures are worth little.")
	}
	if r.Servers["drover"].Limited || r.Servers["drover"+six].Limited {
		fmt.Fprintln(&text, "\nperfdhcp could not ask drover faster: the first figure is perfdhcp's end, not drover's.")
	}
	fmt.Fprintln(&text)
	for _, c := range r.Verdict {
		fmt.Fprintln(&text, c)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// table writes a column for each server of a group, and the ratios. Every cell ends with a
// tab, because the columns are aligned to the right.
func (r *Report) table(w io.Writer, suffix string) {
	var columns []string
	for _, s := range allServers {
		if _, ok := r.Servers[s.name]; ok && s.group() == suffix {
			columns = append(columns, s.name)
		}
	}
	switch {
	case columns == nil:
		return
	case suffix == declared:
		fmt.Fprintf(w, "%d declared nodes, or host reservations\n", nodes)
	case suffix == six:
		fmt.Fprintln(w, "DHCPv6")
	}
	kea, hasKea := keaBest(r.Servers, suffix)
	drover := r.Servers["drover"+suffix]
	dnsmasq, hasDnsmasq := r.Servers["dnsmasq"+suffix]
	fmt.Fprintf(w, "%s\t%s\tdrover : Kea\tdrover : dnsmasq\t\n", strings.Repeat(" ", 41), strings.Join(columns, "\t"))
	for _, row := range rows {
		if suffix == six && !row.six {
			continue
		}
		fmt.Fprintf(w, "%-41s\t", row.title)
		for _, name := range columns {
			f := r.Servers[name]
			fmt.Fprintf(w, row.format+"\t", *row.of(&f))
		}
		ratio := func(ok bool, of *Figures) string {
			if a, b := *row.of(&drover), *row.of(of); ok && a > 0 && b > 0 {
				return fmt.Sprintf("%.2f", a/b)
			}
			return "-"
		}
		fmt.Fprintf(w, "%s\t%s\t\n", ratio(hasKea, &kea), ratio(hasDnsmasq, &dnsmasq))
	}
}
