package main

import (
	"errors"
	"fmt"
)

// A Check is one thing that drover has to be.
type Check struct {
	Name string  `json:"name"`
	Got  float64 `json:"got"`
	Want float64 `json:"want"`
	Most bool    `json:"most"` // Want is the most that it may be, else the least
	Pass bool    `json:"pass"`
}

// String is the line of the report.
func (c Check) String() string {
	outcome, bound := "FAIL", "at least"
	if c.Pass {
		outcome = "PASS"
	}
	if c.Most {
		bound = "at most"
	}
	return fmt.Sprintf("%s  %s: %.4g (want %s %.4g)", outcome, c.Name, c.Got, bound, c.Want)
}

func atLeast(name string, got, want float64) Check { return Check{name, got, want, false, got >= want} }

// atMost takes zero for "not measured".
func atMost(name string, got, want float64) Check {
	return Check{name, got, want, true, got > 0 && got <= want}
}

// judge holds drover's figures against the others'. What was not measured is
// not judged.
func judge(servers map[string]Figures) (checks []Check) {
	drover, ok := servers["drover"]
	if !ok {
		return nil
	}
	if kea, ok := keaBest(servers); ok {
		checks = append(checks,
			atMost("CPU s per 10 000 exchanges at 2000/s (perfdhcp), against 2/3 of Kea's", drover.CPU, kea.CPU*2/3),
			atLeast("exchanges/s under 1 % loss (perfdhcp), against Kea's", drover.Perfdhcp, kea.Perfdhcp))
	}
	if dnsmasq, ok := servers["dnsmasq"]; ok {
		checks = append(checks,
			atLeast("exchanges/s under 1 % loss (perfdhcp), against 10 times dnsmasq's", drover.Perfdhcp, 10*dnsmasq.Perfdhcp))
	}
	return append(checks,
		atMost("p99 at 2000/s, ms", drover.P99, 20),
		atLeast("exchanges/s at 10 x peak, share of the peak", drover.OverloadShare, 0.8))
}

// failure is the error of a run in which drover failed.
func (r *Report) failure() error {
	var errs []error
	for _, c := range r.Verdict {
		if !c.Pass {
			errs = append(errs, errors.New(c.Name))
		}
	}
	if errs != nil {
		return fmt.Errorf("drover fails in %d of %d: %w", len(errs), len(r.Verdict), errors.Join(errs...))
	}
	return nil
}
