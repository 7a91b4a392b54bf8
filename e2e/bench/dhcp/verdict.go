package main

import "drover/e2e/bench/stats"

// judge checks drover's figures against the others'. It skips figures that were not
// measured.
func judge(servers map[string]Figures) (checks []stats.Check) {
	for _, suffix := range []string{"", declared, six} {
		with := map[string]string{declared: ", declared nodes", six: ", DHCPv6"}[suffix]
		drover, ok := servers["drover"+suffix]
		if !ok {
			continue
		}
		if kea, ok := keaBest(servers, suffix); ok {
			checks = append(checks,
				stats.AtMost("CPU s per 10 000 exchanges at 2000/s (perfdhcp), against Kea's"+with, drover.CPU, kea.CPU),
				stats.AtLeast("exchanges/s under 1 % loss (perfdhcp), against Kea's"+with, drover.Perfdhcp, kea.Perfdhcp))
		}
		if dnsmasq, ok := servers["dnsmasq"+suffix]; ok {
			checks = append(checks,
				stats.AtLeast("exchanges/s under 1 % loss (perfdhcp), against 10 times dnsmasq's"+with, drover.Perfdhcp, 10*dnsmasq.Perfdhcp))
		}
		if suffix == six { // the generator, which measures the rest, has no DHCPv6
			continue
		}
		checks = append(checks,
			stats.AtMost("p50 at 2000/s, ms"+with, drover.P50, 1),
			stats.AtMost("p99 at 2000/s, ms"+with, drover.P99, 10),
			stats.AtMost("memory, MB resident"+with, drover.RSS, 120),
			stats.AtLeast("exchanges/s at 10 x peak, share of the peak"+with, drover.OverloadShare, 0.8))
	}
	return checks
}

// failure is the error of a run in which drover failed.
func (r *Report) failure() error { return stats.Failure(r.Verdict) }
