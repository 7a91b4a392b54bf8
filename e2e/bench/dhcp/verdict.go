package main

import "drover/e2e/bench/stats"

// judge holds drover's figures against the others'. What was not measured is
// not judged.
func judge(servers map[string]Figures) (checks []stats.Check) {
	drover, ok := servers["drover"]
	if !ok {
		return nil
	}
	if kea, ok := keaBest(servers); ok {
		checks = append(checks,
			stats.AtMost("CPU s per 10 000 exchanges at 2000/s (perfdhcp), against 2/3 of Kea's", drover.CPU, kea.CPU*2/3),
			stats.AtLeast("exchanges/s under 1 % loss (perfdhcp), against Kea's", drover.Perfdhcp, kea.Perfdhcp))
	}
	if dnsmasq, ok := servers["dnsmasq"]; ok {
		checks = append(checks,
			stats.AtLeast("exchanges/s under 1 % loss (perfdhcp), against 10 times dnsmasq's", drover.Perfdhcp, 10*dnsmasq.Perfdhcp))
	}
	return append(checks,
		stats.AtMost("p99 at 2000/s, ms", drover.P99, 20),
		stats.AtLeast("exchanges/s at 10 x peak, share of the peak", drover.OverloadShare, 0.8))
}

// failure is the error of a run in which drover failed.
func (r *Report) failure() error { return stats.Failure(r.Verdict) }
