package stats

import (
	"errors"
	"fmt"
)

// A Check is a limit that a figure of drover has to keep.
type Check struct {
	Name string  `json:"name"`
	Got  float64 `json:"got"`
	Want float64 `json:"want"`
	Most bool    `json:"most"` // Want is an upper limit, else a lower one
	Pass bool    `json:"pass"`
	Note string  `json:"note,omitempty"` // how reliable Got is
}

// String is the line of a report.
func (c Check) String() string {
	outcome, bound := "FAIL", "at least"
	if c.Pass {
		outcome = "PASS"
	}
	if c.Most {
		bound = "at most"
	}
	line := fmt.Sprintf("%s  %s: %.4g (want %s %.4g)", outcome, c.Name, c.Got, bound, c.Want)
	if c.Note != "" {
		line += "; " + c.Note
	}
	return line
}

// AtLeast is a check of a single figure.
func AtLeast(name string, got, want float64) Check {
	return Check{Name: name, Got: got, Want: want, Pass: got >= want}
}

// AtMost is the check of an upper limit. A figure of zero counts as not measured.
func AtMost(name string, got, want float64) Check {
	return Check{Name: name, Got: got, Want: want, Most: true, Pass: got > 0 && got <= want}
}

// Failure is the error of a run in which drover failed; nil when it did not.
func Failure(checks []Check) error {
	var errs []error
	for _, c := range checks {
		if !c.Pass {
			errs = append(errs, errors.New(c.Name))
		}
	}
	if errs != nil {
		return fmt.Errorf("drover fails in %d of %d: %w", len(errs), len(checks), errors.Join(errs...))
	}
	return nil
}
