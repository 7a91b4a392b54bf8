package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// table prints the results: MB/s and the server's CPU-seconds per GB, and how
// drover compares with the best of the others.
type table struct {
	out     io.Writer
	servers []*server
	worst   float64
	below   []string
}

func newTable(out io.Writer, servers []*server) *table {
	t := &table{out: out, servers: servers, worst: math.Inf(1)}
	for _, s := range servers {
		fmt.Fprintf(out, "%-10s %s\n", s.name, s.version)
	}
	fmt.Fprintf(out, "\n%-7s %5s %6s %5s", "clients", "block", "window", "delay")
	for _, s := range servers {
		fmt.Fprintf(out, " | %16s", s.name)
	}
	fmt.Fprintf(out, " | %6s\n%-26s", "ratio", "")
	for range servers {
		fmt.Fprintf(out, " | %9s %6s", "MB/s", "CPU/GB")
	}
	fmt.Fprintf(out, " |\n%s\n", strings.Repeat("-", 26+19*len(servers)+9))
	return t
}

// row prints a row. A window that a server did not agree to is shown behind its
// rate.
func (t *table) row(r row, results []result) {
	fmt.Fprintf(t.out, "%7d %5d %6d %5s", r.clients, r.block, r.window, fmt.Sprintf("%dms", r.delay.Milliseconds()))
	var ours, best float64
	for i := range results {
		rate := results[i].rate()
		switch s := t.servers[i]; {
		case s.ours:
			ours = rate
		case s.peer:
			best = max(best, rate)
		}
		note := ""
		if results[i].window != r.window {
			note = fmt.Sprintf("w%d", results[i].window)
		}
		if results[i].resent > 0 {
			note += "!"
		}
		cpu := fmt.Sprintf("%.2f", results[i].cpuPerGB())
		if t.servers[i].forks {
			cpu = "-"
		}
		fmt.Fprintf(t.out, " | %3s%6.*f %6s", note, digits(rate), rate, cpu)
	}
	ratio := ours / best
	t.worst = min(t.worst, ratio)
	if ratio < 1 {
		t.below = append(t.below, r.String())
	}
	fmt.Fprintf(t.out, " | %6.3f\n", ratio)
}

// digits is how many say something.
func digits(rate float64) int {
	if rate < 10 {
		return 3
	}
	return 1
}

// end prints the outcome and returns the worst ratio.
func (t *table) end() float64 {
	fmt.Fprintf(t.out, "\nratio: drover's MB/s over the best of tftpd-hpa, atftpd and dnsmasq; the worst row has %.3f\n", t.worst)
	fmt.Fprintln(t.out, "w1: the server sends one block at a time, though asked for more; !: packets were lost")
	for _, name := range t.below {
		fmt.Fprintf(t.out, "below 1: %s\n", name)
	}
	return t.worst
}
