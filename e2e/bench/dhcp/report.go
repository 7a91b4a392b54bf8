package main

import (
	"runtime"
	"time"

	"drover/e2e/bench/stats"
)

// Figures are the measurements of a server.
type Figures struct {
	Perfdhcp float64 `json:"perfdhcp"` // largest rate with less than 1 % loss, in exchanges/s, by perfdhcp
	Limited  bool    `json:"limited"`  // perfdhcp could not ask faster
	Own      float64 `json:"own"`      // the same by the generator of package load; not with -quick

	CPU    float64 `json:"cpu"`    // s per 10 000 exchanges at the common rate, by perfdhcp
	CPUAt  float64 `json:"cpuAt"`  // the rate of that figure; lower for a server that does not reach the common one
	OwnCPU float64 `json:"ownCpu"` // the same by the generator of package load, at the common rate for all servers

	P50  float64 `json:"p50ms"` // from DISCOVER to ACK, at the common rate
	P99  float64 `json:"p99ms"`
	Max  float64 `json:"maxMs"`
	Lost float64 `json:"lost"` // share of exchanges, at the common rate

	Peak    float64 `json:"peak"`    // largest rate of completed exchanges, in exchanges/s, at any loss
	PeakCPU float64 `json:"peakCpu"` // s per 10 000 exchanges at that rate
	RSS     float64 `json:"rssMB"`   // peak while all machines get their first address
	Leases  float64 `json:"leases"`  // given in that time

	Overload      float64 `json:"overload"`      // exchanges/s completed at ten times the peak
	OverloadShare float64 `json:"overloadShare"` // of the peak
	OverloadBegun float64 `json:"overloadBegun"` // DISCOVERs/s that were sent
}

// latency sets the figures of the generator's step at the common rate.
func (f *Figures) latency(s Step) {
	f.P50, f.P99, f.Max, f.Lost, f.OwnCPU = s.P50, s.P99, s.Max, s.Loss, s.cpuPer()
}

// A Report is the outcome of a run.
type Report struct {
	Versions    map[string]string    `json:"versions"`
	LoadAverage [2]string            `json:"loadAverage"` // of the host, before and after
	Others      float64              `json:"others"`      // median of the steps: share of the time in which the servers' processor did other work
	Processors  int                  `json:"processors"`
	Seconds     float64              `json:"secondsPerStep"`
	Quick       bool                 `json:"quick"`
	Servers     map[string]Figures   `json:"servers"` // medians of the rounds
	Verdict     []stats.Check        `json:"verdict"`
	Steps       []Step               `json:"steps"`
	Rounds      map[string][]Figures `json:"rounds"`
	Time        time.Time            `json:"time"`
}

func newReport(b *bench) *Report {
	return &Report{
		Time:        time.Now().UTC().Truncate(time.Second),
		Versions:    map[string]string{"drover": b.programs.from, "kea": b.programs.kea, "dnsmasq": b.programs.dnsmasq},
		LoadAverage: [2]string{stats.LoadAverage()},
		Processors:  runtime.NumCPU(),
		Seconds:     b.length.Seconds(),
		Quick:       b.quick,
		Servers:     map[string]Figures{},
		Rounds:      map[string][]Figures{},
	}
}

// add adds a round of one server and updates the medians.
func (r *Report) add(name string, f Figures) {
	r.Rounds[name] = append(r.Rounds[name], f)
	r.Servers[name] = medians(r.Rounds[name])
	r.Verdict = judge(r.Servers)
}

// end records the load of the host.
func (r *Report) end() {
	r.LoadAverage[1] = stats.LoadAverage()
	var others []float64
	for _, s := range r.Steps {
		others = append(others, s.Others)
	}
	r.Others = stats.Median(others)
}

// medians returns the median of each figure, separately.
func medians(rounds []Figures) (m Figures) {
	for _, row := range rows {
		var values []float64
		for i := range rounds {
			values = append(values, *row.of(&rounds[i]))
		}
		*row.of(&m) = stats.Median(values)
	}
	for _, f := range rounds {
		m.Limited = m.Limited || f.Limited
	}
	return m
}

// keaBest returns Kea's figures: each is the better one of its two configurations. No single
// Kea achieves all of them.
func keaBest(servers map[string]Figures, suffix string) (best Figures, ok bool) {
	one, ok1 := servers["kea"+suffix]
	two, ok2 := servers["kea-mt"+suffix]
	if !ok1 || !ok2 {
		if ok2 {
			one = two
		}
		return one, ok1 || ok2
	}
	best = one
	for _, row := range rows {
		a, b := *row.of(&one), *row.of(&two)
		if row.less && b < a || !row.less && b > a {
			*row.of(&best) = b
		}
	}
	best.Limited = one.Limited && two.Limited
	return best, true
}
