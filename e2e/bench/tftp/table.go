package main

import (
	"fmt"
	"io"
	"strings"

	"drover/e2e/bench/stats"
)

// table prints the results: MB/s, the processor seconds of the server per GB, and the ratio of
// drover to the best of the others.
type table struct {
	out     io.Writer
	servers []*server
	least   float64
	rows    []Row
	checks  []stats.Check
}

// Row is a row in the output of -json.
type Row struct {
	Name  string             `json:"name"`
	Rates map[string]float64 `json:"rates"` // MB/s, medians
	CPU   map[string]float64 `json:"cpu"`   // seconds per GB; not known of servers that fork
	Peer  string             `json:"peer"`  // the best of the others
	Ratio stats.Ratio        `json:"ratio"` // of drover's rate to that peer's
	Check stats.Check        `json:"check"`
}

func newTable(out io.Writer, servers []*server, least float64) *table {
	t := &table{out: out, servers: servers, least: least}
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
	fmt.Fprintf(out, " |\n%s\n", strings.Repeat("-", 26+19*len(servers)+30))
	return t
}

// best returns the peer with the highest rate.
func (t *table) best(results []result) (peer int) {
	peer = -1
	for i := range results {
		if t.servers[i].peer && (peer < 0 || results[i].rate() > results[peer].rate()) {
			peer = i
		}
	}
	return peer
}

// compare returns the ratio of drover to the best peer, from those of the rounds.
func (t *table) compare(results []result) stats.Ratio {
	for i := range results {
		if t.servers[i].ours {
			return stats.Compare(results[i].rates, results[t.best(results)].rates)
		}
	}
	return stats.Ratio{}
}

// row prints a row. A window that a server did not accept is shown before its rate.
func (t *table) row(r row, results []result) {
	done := Row{Name: r.String(), Rates: map[string]float64{}, CPU: map[string]float64{}, Ratio: t.compare(results), Peer: t.servers[t.best(results)].name}
	fmt.Fprintf(t.out, "%7d %5d %6d %5s", r.clients, r.block, r.window, fmt.Sprintf("%dms", r.delay.Milliseconds()))
	for i := range results {
		s, rate := t.servers[i], results[i].rate()
		done.Rates[s.name] = rate
		note := ""
		if results[i].window != r.window {
			note = fmt.Sprintf("w%d", results[i].window)
		}
		if results[i].resent > 0 {
			note += "!"
		}
		cpu := "-"
		if !s.forks {
			done.CPU[s.name] = results[i].cpuPerGB()
			cpu = fmt.Sprintf("%.2f", results[i].cpuPerGB())
		}
		fmt.Fprintf(t.out, " | %3s%6.*f %6s", note, digits(rate), rate, cpu)
	}
	ratio := done.Ratio
	done.Check = r.check(ratio, done.Peer, t.least)
	fmt.Fprintf(t.out, " | %6.3f (%.3f to %.3f) %s\n", ratio.Median, ratio.Low, ratio.High, outcome(done.Check))
	t.rows = append(t.rows, done)
	t.checks = append(t.checks, done.Check)
}

// check compares a ratio with the limit. A single client that gets one window in each round
// trip waits for the network 99 % of the time: there a difference below 1 % is a tie, even if
// 1 is not within the bounds of the ratio.
func (r row) check(ratio stats.Ratio, peer string, least float64) stats.Check {
	c := ratio.AtLeast(r.String()+": MB/s against "+peer+"'s", least)
	if !c.Pass && r.clients == 1 && r.delay > 0 && ratio.Median >= 0.99*least {
		c.Pass, c.Note = true, "a tie within 1 %, "+c.Note
	}
	return c
}

// outcome returns the result of a check as one word.
func outcome(c stats.Check) string {
	switch {
	case !c.Pass:
		return "FAIL"
	case c.Got < c.Want:
		return "tie"
	}
	return ""
}

// digits returns the number of significant decimals.
func digits(rate float64) int {
	if rate < 10 {
		return 3
	}
	return 1
}

// end prints the explanation of the table.
func (t *table) end() {
	fmt.Fprintln(t.out, "\nratio: drover's MB/s over those of the best of tftpd-hpa, atftpd and dnsmasq, median of the rounds'")
	fmt.Fprintln(t.out, "own ratios; in brackets the bounds that it is between, nine times in ten. tie: below 1 by less")
	fmt.Fprintln(t.out, "than 3 %, and the rounds do not tell it from 1; with one client and a delay also by less than 1 %")
	fmt.Fprintln(t.out, "w1: the server sends one block at a time, though asked for more; !: packets were lost")
}
